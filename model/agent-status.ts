import * as z from 'zod';

/** Unknown fields of a newer agent are ignored. */
export const ovsStatus = z.object({
  enabled: z.boolean(),
  enablerFile: z.string(),
  /** CPUs that ordinary threads should be on; null while no affinity is set. */
  desired: z.string().nullable(),
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
          /** CPUs on which the kernel allows it to run. */
          allowed: z.string(),
          /** CPUs of this machine that it should use; null for a thread that is not managed, and while no affinity is set. */
          desired: z.string().nullable(),
          /** `pmd`, `clipped`, the name of the kernel's errno, or null. */
          note: z.string().nullable(),
        }),
      ),
    }),
  ),
});

export type OvsStatus = z.infer<typeof ovsStatus>;

/** Unknown fields of a newer agent are ignored. */
export const vmStatus = z.object({
  vms: z.array(
    z.object({
      namespace: z.string(),
      vmi: z.string(),
      podName: z.string(),
      podUID: z.string(),
      /** Null while QEMU does not run. */
      pid: z.number().nullable(),
      container: z.string(),
      mask: z.string().nullable(),
      /** pinned, unpinned, refused, or null without a state. */
      state: z.string().nullable(),
      message: z.string().nullable(),
      /** CPUs of virt-handler's cgroup for the emulator, or null. */
      housekeeping: z.string().nullable(),
      problems: z.array(z.string()),
      threads: z.array(
        z.object({
          tid: z.number(),
          name: z.string(),
          role: z.string(),
          allowed: z.string(),
          /** Null for a thread that is not pinned. */
          desired: z.string().nullable(),
        }),
      ),
    }),
  ),
  overlaps: z.array(z.object({ vms: z.tuple([z.string(), z.string()]), cpus: z.string() })),
});

export type VmStatus = z.infer<typeof vmStatus>;
export type OneVm = VmStatus['vms'][number];
