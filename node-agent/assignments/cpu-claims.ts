import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import * as z from 'zod';
import type { PodResources } from '../../kube/kubelet-api/gen/pod-resources.ts';
import { MAX_CPU_CLAIMS } from '../../kube/node-topology.ts';
import { CpuSet } from '../../model/cpu-set.ts';
import { PlumblineError } from '../../model/errors.ts';
import { MAX_CPU_ID } from '../../model/host.ts';
import { byText } from '../../model/lists.ts';
import { ProblemLog } from '../../runtime/problem-log.ts';
import { readBounded, unlessMissing } from '../files/bounded-file.ts';
import { followFiles } from '../files/watch-directory.ts';
import type { Guard } from '../lifecycle/duty.ts';
import type { AgentMessages } from '../telemetry/log-messages.ts';
import type { FileSourceDeps, Reading } from './checkpoint.ts';

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

const ABSENT: ReadonlySet<string> = new Set(['ENOENT']);

/** The claims with CPUs, ascending by uid. @throws PlumblineError naming what cannot be read, and why */
export function readCpuClaims(directory: string): CpuClaim[] {
  const claims = new Map<string, CpuClaim>();
  const files = named(`cannot list ${directory}`, () => readdirSync(directory)) ?? [];
  for (const path of files.filter((name) => CDI_FILE.test(name)).map((name) => join(directory, name))) {
    const ofFile = named(path, () => claimsIn(readBounded(path, MAX_FILE_BYTES))) ?? [];
    for (const claim of ofFile) claims.set(claim.uid, claim);
    if (claims.size > MAX_CPU_CLAIMS) {
      throw new PlumblineError('cpu-claims', `${directory}: more than ${MAX_CPU_CLAIMS} claims`);
    }
  }
  return [...claims.values()].sort(byText(({ uid }) => uid));
}

function named<T>(what: string, read: () => T): T | undefined {
  try {
    return unlessMissing(read, ABSENT);
  } catch (error) {
    throw new PlumblineError('cpu-claims', `${what}: ${(error as Error).message}`, { cause: error });
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
      const [kind, id = ''] = device.split('=', 2);
      const uid = DEVICE.exec(id)?.[1];
      if (kind === CDI_KIND && uid !== undefined) names.set(uid, { namespace, name });
    }
  }
  return names;
}

/**
 * The CPUs of prepared claims, in the directory of CDI: a host without it has no claims. Owner: dra-driver-cpu, which
 * writes a claim's CPUs before its container is created. Age: an event of the directory. End: the removal of the file;
 * while a file is unusable, the last good claims stay.
 */
export class CpuClaimsSource {
  readonly #deps: FileSourceDeps<readonly CpuClaim[]>;
  readonly #problems: ProblemLog<AgentMessages>;
  #last: Reading<readonly CpuClaim[]> = { value: undefined, problem: undefined };

  constructor(deps: FileSourceDeps<readonly CpuClaim[]>) {
    this.#deps = deps;
    this.#problems = new ProblemLog(deps.log, { directory: deps.directory });
  }

  follow(guard: Guard, signal: AbortSignal): void {
    const isFile = (name: string) => CDI_FILE.test(name);
    // What cannot be read now causes no event when it can be read again.
    const isDue = () => this.#last.problem !== undefined;
    followFiles({ ...this.#deps, isFile, isDue, read: guard.wrap(() => this.read()), signal });
  }

  read(): void {
    const at = performance.now();
    let reading: Reading<readonly CpuClaim[]>;
    try {
      reading = { value: readCpuClaims(this.#deps.directory), problem: undefined };
    } catch (error) {
      reading = { value: this.#last.value, problem: (error as Error).message };
    }
    if (JSON.stringify(reading) === JSON.stringify(this.#last)) return;
    this.#last = reading;
    if (reading.problem === undefined) this.#problems.recovered();
    else this.#problems.failed(reading.problem, 'CPUs of claims unusable; keeping the last known ones');
    this.#deps.onReading(reading, at);
  }
}
