import type { OvsStatus } from '../../model/agent-status.ts';
import { alike, isInPlace, kindOf, noteOf, type OvsThread } from '../agent/ovs-status.ts';
import { countText } from '../support/terminal.ts';

/**
 * The status for people: the wanted CPUs and the reason, then each process with its threads.
 * @param each one line for each thread; otherwise equal threads share one
 */
export function statusLines(status: OvsStatus, each = false): string[] {
  const { enabled, enablerFile, wanted, why, problems, sources, processes } = status;
  const lines = enabled
    ? [`on: ordinary threads should run on CPUs ${wanted ?? 'of their original affinity, except owned ones'}`]
    : [`off: ${enablerFile} is missing or empty; the agent does not move threads`];
  for (const text of why) lines.push(`  ${text}`);
  for (const { name, problem } of sources) lines.push(`  source ${name}: ${problem ?? 'used'}`);
  for (const problem of problems) lines.push(`! ${problem}`);
  for (const { name, role, pid, threads } of processes) {
    lines.push(
      '',
      `${name}${role === 'daemon' ? '' : ` ${role}`} (pid ${pid}), ${countText(threads.length, 'thread')}`,
    );
    for (const group of each ? threads.map((thread) => [thread]) : alike(threads)) lines.push(threadLine(group));
  }
  if (processes.length === 0) lines.push('', 'no Open vSwitch daemon found');
  return [...lines, ''];
}

function threadLine(group: readonly OvsThread[]): string {
  const [thread] = group;
  if (thread === undefined) return '';
  const { allowed, wanted } = thread;
  const who = group.length === 1 ? `${thread.tid} ${thread.name}` : `${group.length} x ${kindOf(thread)}`;
  const reason = noteOf(thread);
  const verdict =
    wanted === null ? reason : isInPlace(thread) ? 'as wanted' : `wanted ${wanted}: ${reason || 'not moved yet'}`;
  return `  ${who.padEnd(28)} ${allowed.padEnd(16)} ${verdict}`.trimEnd();
}
