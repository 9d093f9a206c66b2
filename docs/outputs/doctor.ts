import * as z from 'zod';
import { AREAS } from '../../cli/doctor/checks/finding.ts';
import { reason } from '../../cli/support/output-schema.ts';
import { remedy } from './explain.ts';

const area = z.enum(AREAS);

/** Output of `plumbline doctor -o json`. */
export const doctorOutput = z
  .strictObject({
    ok: z.boolean(),
    findings: z
      .array(
        z.strictObject({
          area,
          severity: z.enum(['error', 'warning']),
          what: z.string(),
          impact: z.string(),
          fix: remedy.omit({ id: true }),
          meanwhile: remedy.omit({ id: true }).optional(),
          objects: z.array(z.string()).optional(),
          cause: z.string().optional(),
          state: z.strictObject({ reason, remedies: z.array(remedy), nodes: z.array(z.string()) }).optional(),
          consequences: z.array(z.string()).optional(),
        }),
      )
      .meta({ description: 'one for each cause, the most severe first' }),
    areas: z.array(z.strictObject({ area, seen: z.array(z.string()), unseen: z.array(z.string()) })),
    dpus: z.array(z.looseObject({ node: z.string() })).optional(),
  })
  .meta({ title: 'plumbline doctor -o json' });
