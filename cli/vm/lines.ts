import type { OneVm, VmStatus } from '../../model/agent-status.ts';
import { tableLines } from '../support/table.ts';

/**
 * The status for people: each VM with the state of its mask, and its threads with their wanted and actual CPUs.
 * @param each one line for each thread; otherwise equal emulator threads share one
 */
export function statusLines({ vms, overlaps }: VmStatus, each = false): string[] {
  const lines = vms.flatMap((vm) => [...headLines(vm), ...threadLines(vm, each), '']);
  if (vms.length === 0) lines.push('no VM on this node has a CPU mask or dedicated CPUs', '');
  for (const { vms: pair, cpus } of overlaps) lines.push(`! ${pair[0]} and ${pair[1]} are both pinned to CPUs ${cpus}`);
  return lines.at(-1) === '' ? lines.slice(0, -1) : lines;
}

function headLines({ namespace, vmi, pid, container, mask, state, message, housekeeping, problems }: OneVm): string[] {
  const place = pid === null ? 'QEMU is not running' : `pid ${pid}, container CPUs ${container}`;
  const lines = [`${namespace}/${vmi}: ${place}`];
  if (mask !== null) lines.push(`  CPU mask ${mask}: ${state ?? 'not checked yet'}${message ? `; ${message}` : ''}`);
  else if (message !== null) lines.push(`  CPU mask: ${state}; ${message}`);
  if (housekeeping !== null) lines.push(`  housekeeping on CPUs ${housekeeping}`);
  return [...lines, ...problems.map((problem) => `  ! ${problem}`)];
}

function threadLines({ threads }: OneVm, each: boolean): string[] {
  if (threads.length === 0) return [];
  const groups = new Map<string, (typeof threads)[number][]>();
  for (const thread of threads) {
    const { tid, role, allowed, wanted } = thread;
    const key = each || role !== 'emulator' ? String(tid) : `${allowed} ${wanted}`;
    groups.set(key, [...(groups.get(key) ?? []), thread]);
  }
  const rows = [...groups.values()].map((group) => {
    const [first] = group;
    if (first === undefined) return [];
    const { tid, name, role, allowed, wanted } = first;
    const who = group.length === 1 ? [String(tid), name] : [`${group.length} threads`, `${name} …`];
    const verdict = wanted === null ? 'left alone' : wanted === allowed ? 'as wanted' : 'not moved yet';
    return [...who, role, wanted ?? '-', allowed, verdict];
  });
  return tableLines(['THREAD', 'NAME', 'ROLE', 'WANTED', 'ACTUAL', ''], rows).map((line) => `  ${line}`);
}
