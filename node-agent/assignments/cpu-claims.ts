import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import * as z from 'zod';
import type { PodResources } from '../../kube/kubelet-api/gen/pod-resources.ts';
import { MAX_CPU_CLAIMS } from '../../kube/node-topology.ts';
import { CpuSet } from '../../model/cpu-set.ts';
import { PlumblineError } from '../../model/errors.ts';
import { MAX_CPU_ID } from '../../model/host.ts';

import { readBounded } from '../files/bounded-file.ts';

/** The CPUs that dra-driver-cpu gave to a prepared ResourceClaim. */
export interface CpuClaim {
  readonly uid: string;
  readonly cpus: CpuSet;
}

export interface ClaimName {
  readonly namespace: string;
  readonly name: string;
}

/**
 * dra-driver-cpu tells the container runtime the CPUs of a claim in the directory of CDI: in one file for each claim
 * (main of September 2026, pkg/driver/cdi.go) or in one file for all (0.1). No object of the API has them.
 */
export const CDI_FILE = /^dra\.(?:cpu|k8s\.io-cpu_.+)\.json$/;
const CDI_KIND = 'dra.k8s.io/cpu';
const DEVICE = /^claim-([0-9a-f-]{1,64})$/;

const MAX_FILE_BYTES = 1024 * 1024;

const cdiSpec = z.object({
  kind: z.string(),
  devices: z
    .array(z.object({ name: z.string(), containerEdits: z.object({ env: z.array(z.string()).nullish() }) }))
    .nullish(),
});

class CpuClaimError extends PlumblineError {
  constructor(why: string, options?: ErrorOptions) {
    super('cpu-claims', why, options);
  }
}

const isAbsent = (error: unknown) => (error as NodeJS.ErrnoException).code === 'ENOENT';

/** The claims with CPUs, ascending by uid. @throws CpuClaimError */
export function readCpuClaims(directory: string): CpuClaim[] {
  const claims = new Map<string, CpuClaim>();
  for (const file of filesIn(directory)) {
    const path = join(directory, file);
    try {
      for (const claim of claimsIn(readBounded(path, MAX_FILE_BYTES))) claims.set(claim.uid, claim);
    } catch (error) {
      if (isAbsent(error)) continue;
      throw new CpuClaimError(`${path}: ${(error as Error).message}`, { cause: error });
    }
    if (claims.size > MAX_CPU_CLAIMS) throw new CpuClaimError(`${directory}: more than ${MAX_CPU_CLAIMS} claims`);
  }
  return [...claims.values()].sort((a, b) => (a.uid < b.uid ? -1 : 1));
}

function filesIn(directory: string): string[] {
  try {
    return readdirSync(directory).filter((name) => CDI_FILE.test(name));
  } catch (error) {
    if (isAbsent(error)) return [];
    throw new CpuClaimError(`cannot list ${directory}: ${(error as Error).message}`, { cause: error });
  }
}

function claimsIn(text: string): CpuClaim[] {
  const { kind, devices } = cdiSpec.parse(JSON.parse(text));
  if (kind !== CDI_KIND) return [];
  return (devices ?? []).map(({ name, containerEdits: { env } }) => {
    const uid = DEVICE.exec(name)?.[1];
    const variable = `DRA_CPUSET_${uid}=`;
    const value = env?.find((entry) => entry.startsWith(variable))?.slice(variable.length);
    if (uid === undefined || !value) throw new Error(`device ${name.slice(0, 128)} has no CPUs`);
    return { uid, cpus: CpuSet.parse(value, MAX_CPU_ID) };
  });
}

/** The names of the claims with CPUs, by uid. The kubelet lists them from 1.36, or with a feature gate. */
export function claimNames(pods: readonly Pick<PodResources, 'containers'>[]): Map<string, ClaimName> {
  const names = new Map<string, ClaimName>();
  const resources = pods.flatMap(({ containers }) => containers.flatMap((container) => container.dynamicResources));
  for (const { claimNamespace: namespace, claimName: name, claimResources } of resources) {
    for (const { name: device } of claimResources.flatMap(({ cdiDevices }) => cdiDevices)) {
      const uid = device.startsWith(`${CDI_KIND}=`) ? DEVICE.exec(device.slice(CDI_KIND.length + 1))?.[1] : undefined;
      if (uid !== undefined) names.set(uid, { namespace, name });
    }
  }
  return names;
}
