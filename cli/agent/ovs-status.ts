import * as z from 'zod';

/** The agent's response at /ovs. Unknown fields of a newer agent are ignored. */
export const ovsStatus = z.object({
  enabled: z.boolean(),
  enablerFile: z.string(),
  /** CPUs that ordinary threads should be on; null while no affinity is set. */
  wanted: z.string().nullable(),
  why: z.array(z.string()),
  problems: z.array(z.string()),
  /** The agent's sources for CPU owners, and the problem of each; none from an older agent. */
  sources: z.array(z.object({ name: z.string(), problem: z.string().nullable() })).default([]),
  processes: z.array(
    z.object({
      name: z.string(),
      role: z.string(),
      pid: z.number(),
      threads: z.array(
        z.object({
          tid: z.number(),
          name: z.string(),
          allowed: z.string(),
          /** Null for a thread that is not managed, and while no affinity is set. */
          wanted: z.string().nullable(),
          /** `pmd`, `clipped`, the name of the kernel's errno, or null. */
          note: z.string().nullable(),
        }),
      ),
    }),
  ),
});

export type OvsStatus = z.infer<typeof ovsStatus>;
/** Whether every thread is on its CPUs and nothing prevents that. A disabled duty counts as in order. */
export function isInOrder({ problems, processes }: OvsStatus): boolean {
  const threads = processes.flatMap((process) => process.threads);
  return problems.length === 0 && threads.every(isInPlace);
}

export function isInPlace({ allowed, wanted }: OvsThread): boolean {
  return wanted === null || allowed === wanted;
}

export type OvsThread = OvsStatus['processes'][number]['threads'][number];
