import type { SwitchPicture } from '../../console/data/wire.ts';
import { type OvsStatus, ovsStatus } from '../../model/agent-status.ts';
import { groupBy } from '../../model/lists.ts';
import { type AskAgent, readPage } from './ask.ts';

/** Whether every thread is on its CPUs and nothing prevents that. A disabled duty counts as in order. */
export function isSwitchInOrder({ problems, processes }: OvsStatus): boolean {
  const threads = processes.flatMap((process) => process.threads);
  return problems.length === 0 && threads.every(isOnDesiredCpus);
}

export function isOnDesiredCpus({ allowed, desired }: OvsThread): boolean {
  return desired === null || allowed === desired;
}

export type OvsThread = OvsStatus['processes'][number]['threads'][number];

/** @throws CliError if the agent cannot be reached, or does not manage Open vSwitch */
export function fetchOvsStatus(ask: AskAgent): Promise<OvsStatus> {
  const absent = 'this agent does not manage Open vSwitch (its --mode is not full, or it is too old)';
  return readPage(ask, '/ovs', ovsStatus, absent);
}

const NOTES: Readonly<Record<string, string>> = {
  pmd: 'poll mode driver, left alone',
  clipped: 'its cpuset limits it to fewer CPUs',
};

export const threadKind = ({ name, note }: OvsThread): string => (note === 'pmd' ? name : name.replace(/\d+$/, ''));

export function alike(threads: readonly OvsThread[]): OvsThread[][] {
  const keyOf = (thread: OvsThread) =>
    JSON.stringify([threadKind(thread), thread.allowed, thread.desired, thread.note]);
  return [...groupBy(threads, keyOf).values()];
}

/** Why a thread is not managed or not on its CPUs; '' if the agent gives no reason. */
export const noteOf = ({ note }: OvsThread): string =>
  note === null ? '' : (NOTES[note] ?? `refused by the kernel: ${note}`);

export function switchPicture({ enabled, desired, problems, processes }: OvsStatus): SwitchPicture {
  const threads = processes.flatMap(({ name, role, pid, threads: all }) =>
    alike(all).flatMap((group) => {
      const [first] = group;
      if (first === undefined) return [];
      const note = isOnDesiredCpus(first) ? noteOf(first) : noteOf(first) || 'not moved yet';
      const process = role === 'daemon' ? name : `${name} ${role}`;
      const { allowed, desired: desiredCpus } = first;
      return [{ process, pid, kind: threadKind(first), threads: group.length, allowed, desired: desiredCpus, note }];
    }),
  );
  return { enabled, desired, problems, threads };
}
