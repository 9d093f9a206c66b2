import * as z from 'zod';
import { reason, verdict } from '../../cli/support/output-schema.ts';
import { remedy } from './explain.ts';

/** Output of `plumbline verify -o json`. */
export const verifyOutput = z
  .strictObject({
    vms: z.array(
      z.strictObject({
        namespace: z.string(),
        name: z.string(),
        kind: z.enum(['VirtualMachine', 'VirtualMachineInstance']),
        mask: z.string(),
        nodes: z.array(z.string()),
        fallBack: z.array(z.string()),
        refused: z.array(z.strictObject({ node: z.string(), reason: z.string(), message: z.string() })),
        running: z
          .strictObject({ node: z.string(), verdict, reason, text: z.string(), remedies: z.array(remedy) })
          .optional(),
      }),
    ),
    withoutNode: z.number().int(),
    nodes: z.number().int(),
    reporting: z.number().int(),
  })
  .meta({ title: 'plumbline verify -o json' });
