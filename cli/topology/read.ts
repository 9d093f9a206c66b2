import { type HostMemory, readMemory } from '../../hardware/memory.ts';
import { type Nic, readNics } from '../../hardware/nic-cells.ts';
import { type Cache, readCaches, readIsolated, readOffline, readSysfs } from '../../hardware/sysfs.ts';
import { CpuSet } from '../../model/cpu-set.ts';
import { type Cell, createHost, type Host, HostError } from '../../model/host.ts';
import { describeForKubelet, describeSysfs, kubeletContradictions, type SysfsHost } from '../../model/host-sysfs.ts';

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
  const sysfs = await readSysfs(root);
  const host = createHost(describeSysfs(sysfs));
  const ids = host.cells.map(({ id }) => id);
  const [memory, isolated, offline, caches, nics] = await Promise.all([
    readMemory(root, ids),
    readIsolated(root),
    readOffline(root),
    readCaches(root, host.online),
    readNics(root),
  ]);
  const memoryOnly = memory.cells.filter(({ id }) => !ids.includes(id)).map(({ id }) => ({ id, cpus: CpuSet.EMPTY }));
  const cells = [...host.cells, ...memoryOnly].sort((a, b) => a.id - b.id);
  return { host, cells, memory, isolated, offline, contradictions: contradictionsOf(sysfs), caches, nics };
}

function contradictionsOf(sysfs: SysfsHost): readonly string[] {
  try {
    return kubeletContradictions(sysfs, createHost(describeForKubelet(sysfs)));
  } catch (error) {
    if (error instanceof HostError) return [`the kubelet cannot use this machine: ${error.message}`];
    throw error;
  }
}
