import { type HostMemory, readMemory } from '../../hardware/memory.ts';
import { readIsolated, readOffline, readSysfs } from '../../hardware/sysfs.ts';
import type { CpuSet } from '../../model/cpu-set.ts';
import { createHost, type Host, type HostDescription } from '../../model/host.ts';
import { describeForKubelet, kubeletContradictions, type SysfsHost } from '../../model/host-sysfs.ts';

/** A host as a kubelet sees it. */
export interface KubeletHost {
  readonly description: HostDescription;
  readonly host: Host;
  /** Where the kubelet's cores are not the kernel's. */
  readonly contradictions: readonly string[];
}

/** What a kubelet reads of the kernel when it starts. */
export interface HostFacts extends KubeletHost {
  readonly sysfs: SysfsHost;
  readonly memory: HostMemory;
  /** CPUs that the kernel's scheduler uses only for threads pinned to them (isolcpus). */
  readonly isolated: CpuSet;
  readonly offline: CpuSet;
}

/** @throws SysfsError, HostError or ParseError if the host cannot be described, for example while a CPU goes offline */
export async function readHostFacts(sysfsRoot: string): Promise<HostFacts> {
  const sysfs = await readSysfs(sysfsRoot);
  const description = describe(sysfs);
  const cells = description.host.cells.map(({ id }) => id);
  return {
    ...description,
    sysfs,
    memory: await readMemory(sysfsRoot, cells),
    isolated: await readIsolated(sysfsRoot),
    offline: await readOffline(sysfsRoot),
  };
}

/**
 * The host as a kubelet sees it that started when only these CPUs were online; CPUs that sysfs does not describe are
 * left out. @throws HostError if none is left
 */
export function hostWithCpus(facts: HostFacts, cpus: CpuSet): KubeletHost {
  if (facts.host.online.isSubsetOf(cpus)) return facts;
  return describe({ ...facts.sysfs, online: facts.host.online.intersect(cpus).toString() });
}

function describe(sysfs: SysfsHost): KubeletHost {
  const description = describeForKubelet(sysfs);
  const host = createHost(description);
  return { description, host, contradictions: kubeletContradictions(sysfs, host) };
}
