import { type Cache, readCaches } from '../../hardware/caches.ts';
import { type HostMemory, readMemory } from '../../hardware/memory.ts';
import { type Nic, readNics } from '../../hardware/nics.ts';
import { readHost, readIsolated, readOffline, readSysfs } from '../../hardware/sysfs.ts';
import { CpuSet } from '../../model/cpu-set.ts';
import { PlumblineError } from '../../model/errors.ts';
import { type Cell, createHost, type Host } from '../../model/host.ts';
import { describeForKubelet, kubeletContradictions } from '../../model/host-kubelet.ts';

/** The facts about a machine, as the kernel has them. */
export interface Machine {
  readonly host: Host;
  /** The NUMA nodes of the host, and those that have only memory. */
  readonly cells: readonly Cell[];
  readonly memory: HostMemory;
  readonly isolated: CpuSet;
  readonly offline: CpuSet;
  /** Where the kubelet's view of the cores differs. */
  readonly contradictions: readonly string[];
  readonly caches: readonly Cache[];
  readonly nics: readonly Nic[];
}

/** @throws SysfsError, HostError, ParseError */
export async function readMachine(root: string): Promise<Machine> {
  const host = createHost(await readHost(root));
  const ids = host.cells.map(({ id }) => id);
  const [memory, isolated, offline, contradictions, caches, nics] = await Promise.all([
    readMemory(root, ids),
    readIsolated(root),
    readOffline(root),
    readContradictions(root),
    readCaches(root, host.online),
    readNics(root),
  ]);
  const memoryOnly = memory.cells.filter(({ id }) => !ids.includes(id)).map(({ id }) => ({ id, cpus: CpuSet.EMPTY }));
  const cells = [...host.cells, ...memoryOnly].sort((a, b) => a.id - b.id);
  return { host, cells, memory, isolated, offline, contradictions, caches, nics };
}

async function readContradictions(root: string): Promise<readonly string[]> {
  const sysfs = await readSysfs(root);
  try {
    return kubeletContradictions(sysfs, createHost(describeForKubelet(sysfs)));
  } catch (error) {
    if (!(error instanceof PlumblineError)) throw error;
    return [`the kubelet cannot use this machine: ${error.message}`];
  }
}
