import type { OvsStatus } from '../../model/agent-status.ts';
import { countText, cpuListText } from '../../model/amounts.ts';
import * as agents from '../agent/ask.ts';
import { type AgentFlags, usingAgent } from '../agent/flags.ts';
import { numbersOf } from '../support/cpus.ts';
import { EXIT } from '../support/exit-status.ts';
import { print } from '../support/output.ts';

/** Prints the threads of Open vSwitch on a node; without a name, on this machine. @throws CliError, KubeError */
export async function run(node: string | undefined, { output, ...flags }: AgentFlags): Promise<void> {
  const status = await usingAgent(node, flags, agents.fetchOvsStatus);
  await print(output, ovsStatusData(status), { text: (_, wide) => statusLines(status, wide).slice(0, -1) });
  process.exitCode = agents.isSwitchInOrder(status) ? EXIT.ok : EXIT.findings;
}

/** Output of `plumbline ovs status -o json`: docs/schemas/ovs-status.json. */
function ovsStatusData(status: OvsStatus) {
  const listed = (cpus: string | null) => (cpus === null ? null : numbersOf(cpus));
  return {
    ...status,
    inOrder: agents.isSwitchInOrder(status),
    desired: listed(status.desired),
    processes: status.processes.map(({ threads, ...process }) => ({
      ...process,
      threads: threads.map((thread) => ({
        ...thread,
        allowed: numbersOf(thread.allowed),
        desired: listed(thread.desired),
        inPlace: agents.isOnDesiredCpus(thread),
      })),
    })),
  };
}

/** @param each one line for each thread; otherwise equal threads share one */
function statusLines(status: OvsStatus, each = false): string[] {
  const { enabled, enablerFile, desired, why, problems, sources, processes } = status;
  const lines = enabled
    ? [
        `on: ordinary threads should run on ${desired === null ? 'CPUs of their original affinity, except owned ones' : cpuListText(desired)}`,
      ]
    : [`off: ${enablerFile} is missing or empty; the agent does not move threads`];
  for (const text of why) lines.push(`  ${text}`);
  for (const { name, problem } of sources) lines.push(`  source ${name}: ${problem ?? 'used'}`);
  for (const problem of problems) lines.push(`! ${problem}`);
  for (const { name, role, pid, threads } of processes) {
    lines.push(
      '',
      `${name}${role === 'daemon' ? '' : ` ${role}`} (pid ${pid}), ${countText(threads.length, 'thread')}`,
    );
    for (const group of each ? threads.map((thread) => [thread]) : agents.alike(threads)) lines.push(threadLine(group));
  }
  if (processes.length === 0) lines.push('', 'no Open vSwitch daemon found');
  return [...lines, ''];
}

function threadLine(group: readonly agents.OvsThread[]): string {
  const [thread] = group;
  if (thread === undefined) return '';
  const { allowed, desired } = thread;
  const who = group.length === 1 ? `${thread.tid} ${thread.name}` : `${group.length} x ${agents.threadKind(thread)}`;
  const reason = agents.noteOf(thread);
  const misplaced = `desired ${desired}: ${reason || 'not moved yet'}`;
  const verdict = agents.isOnDesiredCpus(thread) ? 'as desired' : misplaced;
  return `  ${who.padEnd(28)} ${allowed.padEnd(16)} ${desired === null ? reason : verdict}`.trimEnd();
}
