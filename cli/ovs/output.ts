import * as z from 'zod';
import { isInOrder, isInPlace, type OvsStatus } from '../agent/ovs-status.ts';
import { cpus, numbersOf } from '../support/output-schema.ts';

/** Output of `plumbline ovs status -o json`. */
export const ovsStatusOutput = z
  .strictObject({
    enabled: z.boolean(),
    enablerFile: z.string(),
    inOrder: z.boolean().meta({ description: 'every thread is on its CPUs and nothing prevents that' }),
    wanted: cpus.nullable().meta({ description: 'CPUs of ordinary threads; null while nothing is set' }),
    why: z.array(z.string()),
    problems: z.array(z.string()),
    sources: z
      .array(z.strictObject({ name: z.string(), problem: z.string().nullable() }))
      .meta({ description: 'the agent’s sources for the owners of CPUs' }),
    processes: z.array(
      z.strictObject({
        name: z.string(),
        role: z.string(),
        pid: z.number().int(),
        threads: z.array(
          z.strictObject({
            tid: z.number().int(),
            name: z.string(),
            allowed: cpus,
            wanted: cpus.nullable().meta({ description: 'null for a thread that is left alone' }),
            inPlace: z.boolean(),
            note: z.string().nullable().meta({ description: 'pmd, clipped, or why the kernel refused to move it' }),
          }),
        ),
      }),
    ),
  })
  .meta({ title: 'plumbline ovs status -o json' });

export function ovsStatusData(status: OvsStatus): z.infer<typeof ovsStatusOutput> {
  const { enabled, enablerFile, wanted, why, problems, sources, processes } = status;
  return {
    enabled,
    enablerFile,
    inOrder: isInOrder(status),
    wanted: wanted === null ? null : numbersOf(wanted),
    why,
    problems,
    sources,
    processes: processes.map(({ name, role, pid, threads }) => ({
      name,
      role,
      pid,
      threads: threads.map((thread) => ({
        tid: thread.tid,
        name: thread.name,
        allowed: numbersOf(thread.allowed),
        wanted: thread.wanted === null ? null : numbersOf(thread.wanted),
        inPlace: isInPlace(thread),
        note: thread.note,
      })),
    })),
  };
}
