import * as z from 'zod';
import { cpus, numaNodes, reason, verdict } from '../support/output-schema.ts';

/** Output of `plumbline top -o json`. */
export const topOutput = z
  .strictObject({
    nodes: z.array(
      z.strictObject({
        node: z.string(),
        kubelet: z.string(),
        remarks: z.array(
          z.strictObject({ reason: z.enum(['NodeGone', 'Cordoned', 'AgentSilent', 'DPUNotReady']), text: z.string() }),
        ),
        cpus,
        cores: z.array(cpus).meta({ description: 'the threads of each core' }),
        cells: z.array(z.strictObject({ id: z.number().int(), cpus, networks: z.array(z.string()) })),
        reserved: cpus,
        polled: cpus.meta({ description: 'CPUs on which Open vSwitch polls' }),
        owners: z.array(
          z.strictObject({
            name: z.string(),
            cpus,
            numaNodes,
            padding: cpus,
            state: z.strictObject({ verdict, reason, text: z.string() }).optional(),
          }),
        ),
        free: cpus,
        freeCores: z.number().int().nonnegative(),
      }),
    ),
    notes: z.array(z.string()),
  })
  .meta({ title: 'plumbline top -o json' });
