import * as z from 'zod';
import type { CpuSet } from '../../model/cpu-set.ts';
import { describeHost } from '../../model/host.ts';
import { unevenCore } from '../../model/host-cores.ts';
import { cpus, numaNodes, numbersOf } from '../support/output-schema.ts';
import type { Machine } from './read.ts';

const bytes = z.number().int().nonnegative().meta({ description: 'bytes' });
const group = z.strictObject({ id: z.number().int(), cpus });

/** Output of `plumbline topology -o json`. */
export const topologyOutput = z
  .strictObject({
    cpus: cpus.meta({ description: 'CPUs that are online, by number, ascending' }),
    threadsPerCore: z.number().int().positive(),
    uneven: z.boolean().meta({ description: 'cores have different numbers of threads' }),
    numaNodes: z.array(
      z.strictObject({
        id: z.number().int(),
        cpus,
        memory: bytes.nullable(),
        hugePages: z.record(z.string(), bytes).meta({ description: 'bytes by the resource name of the page size' }),
        distances: z
          .array(z.number().int())
          .meta({ description: 'distance to each NUMA node with CPUs; empty if unknown' }),
      }),
    ),
    sockets: z.array(group),
    cores: z.array(cpus),
    uncores: z.array(group),
    isolated: cpus.meta({ description: 'CPUs that the kernel’s scheduler does not use (isolcpus)' }),
    caches: z.array(
      z.strictObject({
        level: z.number().int(),
        type: z.enum(['data', 'instruction', 'unified']),
        size: bytes.nullable(),
        cpus,
      }),
    ),
    nics: z.array(
      z.strictObject({
        name: z.string(),
        numaNodes,
        pci: z.string().nullable(),
        driver: z.string().nullable(),
        up: z.boolean().nullable(),
        speed: z.number().nullable().meta({ description: 'megabits a second; null without a link' }),
        virtualFunctions: z.number().int(),
      }),
    ),
  })
  .meta({ title: 'plumbline topology -o json' });

export function topologyData({ host, memory, isolated, caches, nics }: Machine): z.infer<typeof topologyOutput> {
  const { sockets = [], uncores = [] } = describeHost(host);
  const groupOf = ({ id, cpus: list }: { readonly id: number; readonly cpus: string }) => ({
    id,
    cpus: numbersOf(list),
  });
  const listed = (set: CpuSet) => [...set];
  return {
    cpus: listed(host.online),
    threadsPerCore: host.threadsPerCore,
    uneven: unevenCore(host) !== undefined,
    numaNodes: host.cells.map(({ id, cpus: set }) => {
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
