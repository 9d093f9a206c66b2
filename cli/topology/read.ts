import { type Cache, readCaches } from '../../hardware/caches.ts';
import { type HostMemory, readMemory } from '../../hardware/memory.ts';
import { type Nic, readNics } from '../../hardware/nic-cells.ts';
import { readHost, readIsolated } from '../../hardware/sysfs.ts';
import type { CpuSet } from '../../model/cpu-set.ts';
import { createHost, type Host } from '../../model/host.ts';

/** The facts about a machine. */
export interface Machine {
  readonly host: Host;
  readonly memory: HostMemory;
  readonly isolated: CpuSet;
  readonly caches: readonly Cache[];
  readonly nics: readonly Nic[];
}

/** @throws SysfsError, HostError, ParseError */
export async function readMachine(root: string): Promise<Machine> {
  const host = createHost(await readHost(root));
  const ids = host.cells.map(({ id }) => id);
  const [memory, isolated, caches, nics] = await Promise.all([
    readMemory(root, ids),
    readIsolated(root),
    readCaches(root, host.online),
    readNics(root),
  ]);
  return { host, memory, isolated, caches, nics };
}
