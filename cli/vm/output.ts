import * as z from 'zod';
import { REASONS } from '../../model/vm-state/reasons.ts';
import { cpus, numbersOf, reason, verdict } from '../support/output-schema.ts';
import { maskReason, type VmStatus } from './status.ts';

/** Output of `plumbline vm status -o json`. */
export const vmStatusOutput = z
  .strictObject({
    vms: z.array(
      z.strictObject({
        namespace: z.string(),
        vmi: z.string(),
        podName: z.string(),
        podUID: z.string(),
        pid: z.number().nullable(),
        container: cpus,
        mask: z.string().nullable(),
        verdict: verdict.nullable(),
        reason: reason.nullable().meta({ description: 'the state of its CPU mask' }),
        message: z.string().nullable(),
        housekeeping: cpus.nullable(),
        problems: z.array(z.string()),
        threads: z.array(
          z.strictObject({
            tid: z.number(),
            name: z.string(),
            role: z.string(),
            allowed: cpus,
            wanted: cpus.nullable().meta({ description: 'null for a thread that the agent does not move' }),
          }),
        ),
      }),
    ),
    overlaps: z.array(z.strictObject({ vms: z.tuple([z.string(), z.string()]), cpus })),
  })
  .meta({ title: 'plumbline vm status -o json' });

export function vmStatusData({ vms, overlaps }: VmStatus): z.infer<typeof vmStatusOutput> {
  return {
    vms: vms.map(({ state, container, housekeeping, threads, ...rest }) => ({
      ...rest,
      container: numbersOf(container),
      verdict: state === null ? null : REASONS[maskReason(state)].verdict,
      reason: state === null ? null : maskReason(state),
      housekeeping: housekeeping === null ? null : numbersOf(housekeeping),
      threads: threads.map(({ allowed, wanted, ...thread }) => ({
        ...thread,
        allowed: numbersOf(allowed),
        wanted: wanted === null ? null : numbersOf(wanted),
      })),
    })),
    overlaps: overlaps.map(({ vms: pair, cpus: list }) => ({ vms: pair, cpus: numbersOf(list) })),
  };
}
