import { type HostMemory, readMemory } from '../../hardware/memory.ts';
import { readIsolated, readOffline, readSysfs } from '../../hardware/sysfs.ts';
import type { CpuSet } from '../../model/cpu-set.ts';
import { createHost, type Host, type HostDescription } from '../../model/host.ts';
import { describeForKubelet, kubeletContradictions } from '../../model/host-sysfs.ts';
import type { Logger } from '../../runtime/log.ts';

/** Facts that do not change while the agent runs: the kubelet, too, reads the topology once. */
export interface HostFacts {
  /** The host as the kubelet sees it. */
  readonly description: HostDescription;
  readonly host: Host;
  readonly memory: HostMemory;
  /** CPUs that the kernel's scheduler uses only for threads pinned to them (isolcpus). */
  readonly isolated: CpuSet;
  /** CPUs that are present and not online. */
  readonly offline: CpuSet;
  /** Where the kubelet's view of the cores is not the kernel's. */
  readonly contradictions: readonly string[];
}

/** Reads the host once. It does not cache a failure, so a restarted duty reads again. */
export function createHostFacts(sysfsRoot: string, log: Logger) {
  let known: HostFacts | undefined;
  let reading: Promise<HostFacts> | undefined;
  return {
    known: () => known,
    /** @throws SysfsError, HostError or ParseError if the host cannot be described */
    read(): Promise<HostFacts> {
      reading ??= readHostFacts(sysfsRoot, log).then(
        (facts) => {
          known = facts;
          return facts;
        },
        (error: unknown) => {
          reading = undefined;
          throw error;
        },
      );
      return reading;
    },
  };
}

export type HostFactsReader = ReturnType<typeof createHostFacts>;

async function readHostFacts(sysfsRoot: string, log: Logger): Promise<HostFacts> {
  const sysfs = await readSysfs(sysfsRoot);
  const description = describeForKubelet(sysfs);
  const host = createHost(description);
  const { cells, online, threadsPerCore } = host;
  const ids = cells.map(({ id }) => id);
  const memory = await readMemory(sysfsRoot, ids);
  const isolated = await readIsolated(sysfsRoot);
  const offline = await readOffline(sysfsRoot);
  const contradictions = kubeletContradictions(sysfs, host);
  log.info({ cpus: online, isolated, offline, cells: ids, threadsPerCore, contradictions }, 'host topology read');
  return { description, host, memory, isolated, offline, contradictions };
}
