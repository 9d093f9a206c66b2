import type { CpuSet } from '../../model/cpu-set.ts';
import { unevenCore } from '../../model/host.ts';
import { grouped } from '../../model/host-sysfs.ts';
import { numbersOf } from '../support/output.ts';
import type { Machine } from './read.ts';

/** Output of `plumbline topology -o json`: docs/schemas/topology.json. */
export function topologyData({ host, cells, memory, isolated, offline, contradictions, caches, nics }: Machine) {
  const sockets = grouped(host.cpus, ({ socket }) => socket);
  const uncores = grouped(host.cpus, ({ uncore }) => uncore);
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
      const its = memory.cells.find((one) => one.id === id);
      return {
        id,
        cpus: listed(set),
        memory: its?.memory ?? null,
        hugePages: { ...its?.hugePages },
        distances: [...(memory.distances?.[String(id)] ?? [])],
      };
    }),
    sockets: sockets.map(groupOf),
    cores: host.cores.map(listed),
    uncores: uncores.map(groupOf),
    isolated: listed(isolated),
    contradictions: [...contradictions],
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
