import { REASONS, type Reason } from '../../diagnosis/reasons.ts';
import { type OneVm, type VmStatus, vmStatus } from '../../model/agent-status.ts';
import { cpuListText } from '../../model/amounts.ts';
import { groupBy } from '../../model/lists.ts';
import { type AskAgent, readPage } from '../agent/ask.ts';
import { type AgentFlags, usingAgent } from '../agent/flags.ts';
import { numbersOf } from '../support/cpus.ts';
import { EXIT } from '../support/exit-status.ts';
import { print } from '../support/output.ts';
import { tableLines } from '../support/terminal.ts';

/** Prints the threads of the VMs on a node; without a name, on this machine. @throws CliError, KubeError */
export async function run(node: string | undefined, { output, ...flags }: AgentFlags): Promise<void> {
  const status = await usingAgent(node, flags, fetchVmStatus);
  await print(output, vmStatusData(status), { text: (_, wide) => statusLines(status, wide) });
  process.exitCode = areVmsInOrder(status) ? EXIT.ok : EXIT.findings;
}

/** Output of `plumbline vm status -o json`: docs/schemas/vm-status.json. */
function vmStatusData({ vms, overlaps }: VmStatus) {
  return {
    vms: vms.map(({ state, container, housekeeping, threads, ...rest }) => ({
      ...rest,
      container: numbersOf(container),
      verdict: state === null ? null : REASONS[maskReason(state)].verdict,
      reason: state === null ? null : maskReason(state),
      housekeeping: housekeeping === null ? null : numbersOf(housekeeping),
      threads: threads.map(({ allowed, desired, ...thread }) => ({
        ...thread,
        allowed: numbersOf(allowed),
        desired: desired === null ? null : numbersOf(desired),
      })),
    })),
    overlaps: overlaps.map(({ vms: pair, cpus: list }) => ({ vms: pair, cpus: numbersOf(list) })),
  };
}

/** Each VM with its mask's state and its threads. @param each one line for each thread, else equal ones share it */
function statusLines({ vms, overlaps }: VmStatus, each = false): string[] {
  const lines = vms.flatMap((vm) => [...headLines(vm), ...threadLines(vm, each), '']);
  if (vms.length === 0) lines.push('no VM on this node has a CPU mask or dedicated CPUs', '');
  for (const { vms: pair, cpus } of overlaps)
    lines.push(`! ${pair[0]} and ${pair[1]} are both pinned to ${cpuListText(cpus)}`);
  return lines.at(-1) === '' ? lines.slice(0, -1) : lines;
}

function headLines({ namespace, vmi, pid, container, mask, state, message, housekeeping, problems }: OneVm): string[] {
  const qemuText = pid === null ? 'QEMU is not running' : `pid ${pid}, container ${cpuListText(container)}`;
  const lines = [`${namespace}/${vmi}: ${qemuText}`];
  if (mask !== null) lines.push(`  CPU mask ${mask}: ${state ?? 'not checked yet'}${message ? `; ${message}` : ''}`);
  else if (message !== null) lines.push(`  CPU mask: ${state}; ${message}`);
  if (housekeeping !== null) lines.push(`  housekeeping on ${cpuListText(housekeeping)}`);
  return [...lines, ...problems.map((problem) => `  ! ${problem}`)];
}

const affinityText = (isAsDesired: boolean) => (isAsDesired ? 'as desired' : 'not moved yet');

function threadLines({ threads }: OneVm, each: boolean): string[] {
  if (threads.length === 0) return [];
  const groups = groupBy(threads, ({ tid, role, allowed, desired }) =>
    each || role !== 'emulator' ? String(tid) : `${allowed} ${desired}`,
  );
  const rows = [...groups.values()].map((group) => {
    const { tid, name, role, allowed, desired } = group[0]!;
    const who = group.length === 1 ? [String(tid), name] : [`${group.length} threads`, `${name} …`];
    return [...who, role, desired ?? '-', allowed, desired === null ? 'left alone' : affinityText(desired === allowed)];
  });
  return tableLines(['THREAD', 'NAME', 'ROLE', 'DESIRED', 'ACTUAL', ''], rows).map((line) => `  ${line}`);
}

/** @throws CliError if the agent cannot be reached, or does not manage VMs */
function fetchVmStatus(ask: AskAgent): Promise<VmStatus> {
  const absent = 'this agent does not manage VMs (--vm-pinning off, --mode dpu, or it is too old)';
  return readPage(ask, '/vms', vmStatus, absent);
}

/** The state of a VM's mask from the agent's name for it, with the same reason as in `plumbline explain`. */
function maskReason(state: string): Reason {
  if (state === 'pinned') return 'MaskApplied';
  return state === 'refused' ? 'PinningRefused' : 'MaskNotApplied';
}

function areVmsInOrder({ vms, overlaps }: VmStatus): boolean {
  const isInOrder = ({ mask, state, problems, threads }: OneVm) =>
    (state === null ? mask === null : REASONS[maskReason(state)].verdict === 'ok') &&
    problems.length === 0 &&
    threads.every(({ allowed, desired }) => desired === null || allowed === desired);
  return overlaps.length === 0 && vms.every(isInOrder);
}
