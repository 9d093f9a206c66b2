import * as z from 'zod';
import { cpus, numaNodes, reason, verdict } from '../../cli/support/output-schema.ts';

const stage = z.enum([
  'stopped',
  'no-launcher',
  'gated',
  'unscheduled',
  'starting',
  'rejected',
  'failed',
  'deleting',
  'succeeded',
  'paused',
  'running',
]);
export const remedy = z.strictObject({
  id: z.string().meta({ description: 'the kind of remedy, a stable word' }),
  text: z.string(),
  commands: z.array(
    z.strictObject({ program: z.enum(['kubectl', 'plumbline', 'virtctl']), args: z.array(z.string()) }),
  ),
});
const cause = z.strictObject({ reason, text: z.string(), remedies: z.array(remedy) });

/** Output of `plumbline explain -o json`. */
export const explainOutput = z
  .strictObject({
    kind: z.enum(['pod', 'vm']),
    namespace: z.string(),
    name: z.string(),
    state: stage.meta({ description: 'its phase' }),
    verdict,
    reason: reason.meta({ description: 'the most severe reason' }),
    text: z.string().meta({ description: 'the reason in one line' }),
    causes: z.array(cause).meta({ description: 'further reasons' }),
    remedies: z.array(remedy).meta({ description: 'remedies, the most likely first' }),
    pod: z.string().optional().meta({ description: 'the launcher, for a VM' }),
    node: z.string().optional(),
    placement: z
      .strictObject({ cpus, numaNodes, wholeCores: z.boolean() })
      .optional()
      .meta({ description: 'its dedicated CPUs, as its node reports them' }),
    asks: z
      .strictObject({
        text: z.array(z.string()),
        containers: z.array(z.strictObject({ name: z.string(), cpus: z.number().int().positive() })),
        padding: z.number().int().nonnegative().meta({ description: 'CPUs of these that complete whole cores' }),
        wholeCores: z.boolean(),
        webhook: z
          .strictObject({ decision: z.enum(['padded', 'nothing-to-pad', 'not-padded', 'none']), text: z.string() })
          .optional()
          .meta({ description: 'the decision of the webhook; `none`: it has not decided about this launcher' }),
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
    scheduler: z.string().optional().meta({ description: 'the last message of kube-scheduler' }),
    source: z.enum(['extender', 'reports']).optional(),
    nodes: z
      .array(
        z.strictObject({
          kind: z.string().meta({ description: '`fits`, or the reason; a stable word' }),
          text: z.string(),
          count: z.number().int().positive(),
          nodes: z.array(z.string()),
          detail: z.string().meta({ description: 'details of the first node' }),
          missing: z.number().optional().meta({ description: 'CPUs or cores that the first node lacks' }),
          cpus: cpus.optional(),
          numaNodes: numaNodes.optional(),
        }),
      )
      .meta({ description: 'nodes with the same result, those that lack least first' }),
    notes: z.array(z.string()),
    events: z.array(
      z.strictObject({ reason: z.string(), message: z.string(), ago: z.number().meta({ description: 'seconds' }) }),
    ),
  })
  .meta({ title: 'plumbline explain -o json' });
