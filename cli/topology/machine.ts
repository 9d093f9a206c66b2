import { readMemory } from '../../hardware/memory.ts';
import { readNics } from '../../hardware/nic-cells.ts';
import { readCaches, readIsolated, readOffline, readSysfs } from '../../hardware/sysfs.ts';
import { CpuSet } from '../../model/cpu-set.ts';
import { createHost, unevenCore } from '../../model/host.ts';
import { describeSysfs, groupCpus } from '../../model/host-sysfs.ts';
import { numbersOf } from '../support/output.ts';

export type Machine = Awaited<ReturnType<typeof readMachine>>;

/** @throws SysfsError, HostError, ParseError */
export async function readMachine(root: string) {
  const host = createHost(describeSysfs(await readSysfs(root)));
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
  return { host, cells, memory, isolated, offline, caches, nics };
}

/** Output of `plumbline topology -o json`: docs/schemas/topology.json. */
export function topologyData({ host, cells, memory, isolated, offline, caches, nics }: Machine) {
  const groupOf = ({ id, cpus: list }: { readonly id: number; readonly cpus: string }) => ({
    id,
    cpus: numbersOf(list),
  });
  const listed = (set: CpuSet) => [...set];
  return {
    cpus: listed(host.online),
    offline: listed(offline),
    threadsPerCore: host.threadsPerCore,
    uneven: unevenCore(host) !== undefined,
    numaNodes: cells.map(({ id, cpus: set }) => {
      const cellMemory = memory.cells.find((cell) => cell.id === id);
      return {
        id,
        cpus: listed(set),
        memory: cellMemory?.memory ?? null,
        hugePages: { ...cellMemory?.hugePages },
        distances: [...(memory.distances?.[String(id)] ?? [])],
      };
    }),
    sockets: groupCpus(host.cpus, ({ socket }) => socket).map(groupOf),
    cores: host.cores.map(listed),
    uncores: groupCpus(host.cpus, ({ uncore }) => uncore).map(groupOf),
    isolated: listed(isolated),
    caches: caches.map(({ level, type, size, cpus: set }) => ({ level, type, size: size ?? null, cpus: listed(set) })),
    nics: nics.map(({ name, cells, pci, driver, up, speed, virtualFunctions }) => ({
      name,
      numaNodes: [...cells],
      pci: pci ?? null,
      driver: driver ?? null,
      up: up ?? null,
      speed: speed ?? null,
      virtualFunctions,
    })),
  };
}
