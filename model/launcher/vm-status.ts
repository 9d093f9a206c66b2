import * as z from 'zod';

/** The agent's response at /vms. Unknown fields of a newer agent are ignored. */
export const vmStatus = z.object({
  vms: z.array(
    z.object({
      namespace: z.string(),
      vmi: z.string(),
      podName: z.string(),
      podUID: z.string(),
      /** Null while QEMU does not run. */
      pid: z.number().nullable(),
      /** The cpuset of its container. */
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
          wanted: z.string().nullable(),
        }),
      ),
    }),
  ),
  overlaps: z.array(z.object({ vms: z.tuple([z.string(), z.string()]), cpus: z.string() })),
});

export type VmStatus = z.infer<typeof vmStatus>;
export type OneVm = VmStatus['vms'][number];
