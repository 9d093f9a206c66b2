import fc from 'fast-check';
import { CpuSet } from '../../../model/cpu-set.ts';
import { createHost, type Host } from '../../../model/host.ts';

/** A generated host: NUMA nodes, cores in each, threads in each core, and the order of CPU ids. */
export interface Shape {
  readonly cells: number;
  readonly cores: number;
  readonly threads: number;
  /** `near`: siblings have consecutive ids (0-1). `far`: the second threads follow all first threads (0,8). */
  readonly siblings: 'near' | 'far';
  readonly cellsPerSocket: number;
}

export function hostOf({ cells, cores, threads, siblings, cellsPerSocket }: Shape): Host {
  const total = cells * cores;
  const threadsOf = (core: number) =>
    Array.from({ length: threads }, (_, thread) =>
      siblings === 'near' ? core * threads + thread : core + thread * total,
    );
  const cpusOfCell = (cell: number) =>
    CpuSet.of(Array.from({ length: cores }, (_, core) => threadsOf(cell * cores + core)).flat());
  const sockets = Math.ceil(cells / cellsPerSocket);
  return createHost({
    cells: Array.from({ length: cells }, (_, id) => ({ id, cpus: `${cpusOfCell(id)}` })),
    cores: Array.from({ length: total }, (_, core) => `${CpuSet.of(threadsOf(core))}`),
    sockets: Array.from({ length: sockets }, (_, id) => ({
      id,
      cpus: `${CpuSet.of(
        Array.from({ length: cells }, (_, cell) => cell)
          .filter((cell) => Math.floor(cell / cellsPerSocket) === id)
          .flatMap((cell) => cpusOfCell(cell).toArray()),
      )}`,
    })),
  });
}

export const policies = fc.constantFrom(
  'none' as const,
  'best-effort' as const,
  'restricted' as const,
  'single-numa-node' as const,
);
