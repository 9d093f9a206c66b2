import { isInPlace, type OvsStatus, type OvsThread } from './status.ts';

const NOTES: Readonly<Record<string, string>> = {
  pmd: 'poll mode driver, left alone',
  clipped: 'its cpuset holds it on fewer CPUs',
};

/**
 * The status for people: what is wanted and why, then each process with its threads.
 * @param each a line for each thread; else those that are alike share one
 */
export function statusLines(status: OvsStatus, each = false): string[] {
  const { enabled, enablerFile, wanted, why, problems, sources, processes } = status;
  const lines = enabled
    ? [`on: ordinary threads belong on CPUs ${wanted ?? 'they were on, but for owned ones'}`]
    : [`off: ${enablerFile} is missing or empty; threads are where they were put by others`];
  for (const text of why) lines.push(`  ${text}`);
  for (const { name, problem } of sources) lines.push(`  source ${name}: ${problem ?? 'used'}`);
  for (const problem of problems) lines.push(`! ${problem}`);
  for (const { name, role, pid, threads } of processes) {
    lines.push('', `${name}${role === 'daemon' ? '' : ` ${role}`} (pid ${pid}), ${threads.length} threads`);
    for (const group of each ? threads.map((thread) => [thread]) : alike(threads)) lines.push(threadLine(group));
  }
  if (processes.length === 0) lines.push('', 'no daemon of Open vSwitch was found');
  return [...lines, ''];
}

/** Threads of the same kind (a name without its number), allowed CPUs and note, in order. */
function alike(threads: readonly OvsThread[]): OvsThread[][] {
  const groups = new Map<string, OvsThread[]>();
  for (const thread of threads) {
    const key = JSON.stringify([kindOf(thread), thread.allowed, thread.wanted, thread.note]);
    groups.set(key, [...(groups.get(key) ?? []), thread]);
  }
  return [...groups.values()];
}

const kindOf = ({ name, note }: OvsThread): string => (note === 'pmd' ? name : name.replace(/\d+$/, ''));

function threadLine(group: readonly OvsThread[]): string {
  const [thread] = group;
  if (thread === undefined) return '';
  const { allowed, wanted, note } = thread;
  const who = group.length === 1 ? `${thread.tid} ${thread.name}` : `${group.length} x ${kindOf(thread)}`;
  const reason = note === null ? '' : (NOTES[note] ?? `refused by the kernel: ${note}`);
  const verdict =
    wanted === null ? reason : isInPlace(thread) ? 'as wanted' : `wanted ${wanted}: ${reason || 'to be moved'}`;
  return `  ${who.padEnd(28)} ${allowed.padEnd(16)} ${verdict}`.trimEnd();
}
