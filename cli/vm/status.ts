import * as z from 'zod';
import { REASONS, type Reason } from '../../model/vm-state/reasons.ts';
import { type AskAgent, readPage } from '../agent/ask.ts';

/** The agent's response at /vms. Unknown fields of a newer agent are ignored. */
const vmStatus = z.object({
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

/** @throws CliError if the agent cannot be reached, or does not manage VMs */
export function fetchVmStatus(ask: AskAgent): Promise<VmStatus> {
  return readPage(
    ask,
    '/vms',
    vmStatus,
    'this agent does not manage VMs (--vm-pinning off, --mode dpu, or it is too old)',
  );
}

/** The state of a VM's mask from the agent's name for it, with the same reason as in `plumbline explain`. */
export function maskReason(state: string): Reason {
  if (state === 'pinned') return 'MaskApplied';
  return state === 'refused' ? 'PinningRefused' : 'MaskNotApplied';
}

/** Whether every thread is on its CPUs, every mask is satisfied and no two VMs share CPUs. */
export function isInOrder({ vms, overlaps }: VmStatus): boolean {
  const isKept = ({ state, problems, threads }: OneVm) =>
    (state === null || REASONS[maskReason(state)].verdict === 'ok') &&
    problems.length === 0 &&
    threads.every(({ allowed, wanted }) => wanted === null || allowed === wanted);
  return overlaps.length === 0 && vms.every(isKept);
}
