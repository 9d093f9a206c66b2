import { type OneVm, type VmStatus, vmStatus } from '../../model/agent-status.ts';
import { REASONS, type Reason } from '../../model/vm-state/reasons.ts';
import { type AskAgent, readPage } from '../agent/ask.ts';

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
