import * as z from 'zod';
import { cause, cpus, numaNodes, reason, remedy, stage, verdict } from '../support/output-schema.ts';

/** What `plumbline explain -o json` prints. */
export const explainOutput = z
  .strictObject({
    kind: z.enum(['pod', 'vm']),
    namespace: z.string(),
    name: z.string(),
    state: stage.meta({ description: 'how far it has come' }),
    verdict,
    reason: reason.meta({ description: 'the worst thing that is true of it' }),
    text: z.string().meta({ description: 'the reason in a line' }),
    causes: z.array(cause).meta({ description: 'what else is true of it' }),
    remedies: z.array(remedy).meta({ description: 'what would help, the likeliest first' }),
    pod: z.string().optional().meta({ description: 'of a VM its launcher' }),
    node: z.string().optional(),
    placement: z
      .strictObject({ cpus, numaNodes, wholeCores: z.boolean() })
      .optional()
      .meta({ description: 'CPUs of its own that it has, as its node reports' }),
    asks: z
      .strictObject({
        text: z.array(z.string()),
        containers: z.array(z.strictObject({ name: z.string(), cpus: z.number().int().positive() })),
        padding: z.number().int().nonnegative().meta({ description: 'CPUs of these that fill whole cores' }),
        wholeCores: z.boolean(),
        webhook: z
          .strictObject({ decision: z.enum(['padded', 'nothing-to-pad', 'not-padded', 'none']), text: z.string() })
          .optional()
          .meta({ description: 'what the webhook made of it; `none`: it has not decided about this launcher' }),
        mask: z.string().optional(),
        networks: z.array(
          z.strictObject({
            kind: z.enum(['physnet', 'tunnel']),
            physnet: z.string().optional(),
            affinity: z.enum(['required', 'preferred']),
          }),
        ),
      })
      .optional(),
    scheduler: z.string().optional().meta({ description: 'what kube-scheduler itself said last' }),
    source: z.enum(['extender', 'reports']).optional(),
    nodes: z
      .array(
        z.strictObject({
          kind: z.string().meta({ description: '`fits`, or why not: stable' }),
          text: z.string(),
          count: z.number().int().positive(),
          nodes: z.array(z.string()),
          detail: z.string().meta({ description: 'of the first of the nodes' }),
          missing: z.number().optional().meta({ description: 'CPUs or cores that the first node is short of' }),
          cpus: cpus.optional(),
          numaNodes: numaNodes.optional(),
        }),
      )
      .meta({ description: 'nodes of which the same is true, the nearest to taking it first' }),
    notes: z.array(z.string()),
    events: z.array(
      z.strictObject({ reason: z.string(), message: z.string(), ago: z.number().meta({ description: 'seconds' }) }),
    ),
  })
  .meta({ title: 'plumbline explain -o json' });
