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

/** Interrupts of a VM's CPUs: `exact` from irq.pressure; `sampled` from /proc/stat, also while the VM does not run. */
export const INTERFERENCE_QUALITIES = ['exact', 'sampled', 'softirqs-sampled', 'counts'] as const;

/** Seconds of CPU time. Null where the kernel does not count it, or the agent cannot read it; never 0 for that. */
const interferenceSeconds = z.object({
  /** Seconds of the clock in which they were measured. */
  seconds: z.number(),
  interrupts: z.number().nullable(),
  /** In which vCPU threads waited for a CPU. */
  runDelay: z.number().nullable(),
  /** Used by threads of the VM itself: vhost, IO threads and the emulator. */
  own: z.number().nullable(),
});

/**
 * Work of the kernel on owned CPUs. planned: would be moved. moved; pending: at its next interrupt. managed: only the
 * kernel sets it. refused: with the kernel's error. foreign: another process keeps setting it.
 */
const movedItem = z.object({
  kind: z.enum(['irq', 'rps', 'workqueue', 'kthread', 'default']),
  name: z.string(),
  original: z.string(),
  /** Null if no CPU is left for it. */
  desired: z.string().nullable(),
  actual: z.string(),
  state: z.enum(['planned', 'moved', 'pending', 'managed', 'refused', 'foreign']),
  error: z.string().nullable(),
});

export type MovedItem = z.infer<typeof movedItem>;

/** Unknown fields of a newer agent are ignored. */
export const interferenceStatus = z.object({
  mode: z.enum(['measure', 'move']),
  vms: z.array(
    z.object({
      namespace: z.string(),
      vmi: z.string(),
      podName: z.string(),
      podUID: z.string(),
      cpus: z.string(),
      quality: z.enum(INTERFERENCE_QUALITIES),
      lastMinute: interferenceSeconds.nullable(),
      sinceStart: interferenceSeconds,
      /** Interrupts and run delay as a share of the time of its CPUs, in the last minute. */
      share: z.number().nullable(),
      /** Earlier values of `share`, one for each reading, oldest first. */
      history: z.array(z.number().nullable()),
      /** Most frequent first, in the last minute. */
      sources: z.array(z.object({ id: z.string(), name: z.string(), devices: z.array(z.string()), count: z.number() })),
    }),
  ),
  /** What runs on owned CPUs besides VMs and can be set, or what the agent has set. */
  items: z.array(movedItem),
  /** Other programs that set the same, and what the agent leaves to them. */
  managers: z.array(z.object({ name: z.string(), leaves: z.string() })),
  problems: z.array(z.string()),
});

export type InterferenceStatus = z.infer<typeof interferenceStatus>;
export type DisturbedVm = InterferenceStatus['vms'][number];
