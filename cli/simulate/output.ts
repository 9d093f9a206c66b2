import * as z from 'zod';
import type { Simulation } from './simulate.ts';

const count = z.number().int().nonnegative();

/** Output of `plumbline simulate -o json`. */
export const simulateOutput = z
  .strictObject({
    fits: z.boolean().meta({ description: 'every requested VM fits' }),
    nodes: count,
    cpus: z.strictObject({
      total: count,
      reserved: count,
      before: count.meta({ description: 'CPUs that had an owner before' }),
      given: count.meta({ description: 'CPUs that the placed VMs own' }),
      padding: count.meta({ description: 'of these, added for whole cores' }),
      free: count,
      stranded: count.meta({ description: 'of these, on nodes where none of the VMs fits' }),
    }),
    splitCores: count.meta({ description: 'cores with some owned and some free threads' }),
    vms: z.array(
      z.strictObject({
        name: z.string(),
        cpus: count,
        padding: count,
        asked: count.nullable().meta({ description: 'null: as many as fit' }),
        placed: count,
        refusals: z
          .record(z.string(), count)
          .meta({ description: 'if no more fit: how many nodes refuse one more, by reason' }),
      }),
    ),
    placements: z.record(z.string(), z.array(z.string())).meta({ description: 'names of VMs by node' }),
    notes: z.array(z.string()),
  })
  .meta({ title: 'plumbline simulate -o json' });

export function simulateData(
  result: Simulation,
  fits: boolean,
  notes: readonly string[],
): z.infer<typeof simulateOutput> {
  const { nodes, cpus, splitCores, vms, placements } = result;
  return {
    fits,
    nodes,
    cpus,
    splitCores,
    vms: vms.map(({ asked, refusals, ...rest }) => ({ ...rest, asked: asked ?? null, refusals: { ...refusals } })),
    placements: Object.fromEntries(Object.entries(placements).map(([node, names]) => [node, [...names]])),
    notes: [...notes],
  };
}
