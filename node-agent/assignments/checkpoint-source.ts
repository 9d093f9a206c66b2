import { type Stats, statSync } from 'node:fs';
import { join } from 'node:path';
import { ProblemLog } from '../../runtime/problem-log.ts';
import { readBounded } from '../files/bounded-file.ts';
import { watchDirectory } from '../files/watch-directory.ts';
import type { AgentLogger } from '../telemetry/log-messages.ts';
import { CHECKPOINT_FILE, type Checkpoint, MAX_CHECKPOINT_BYTES, parseCheckpoint } from './checkpoint.ts';
import type { Reading } from './view.ts';

/** Seconds between reads of the file in case an event was lost. */
const POLL_SECONDS = 5;

export interface CheckpointSourceDeps {
  readonly directory: string;
  readonly log: AgentLogger;
  /** Called with each new reading; `at` is when this process learned of it, in monotonic milliseconds. */
  readonly onReading: (reading: Reading<Checkpoint>, at: number) => void;
}

/** Reads synchronously in the watch's callback: OVS stays on a CPU that has a new owner until it is read. */
export function followCheckpoint({ directory, log, onReading }: CheckpointSourceDeps, signal: AbortSignal): void {
  const file = join(directory, CHECKPOINT_FILE);
  const problems = new ProblemLog(log, { file });
  let last: Reading<Checkpoint> = { value: undefined, problem: undefined };
  let lastText: string | undefined;
  let lastStats: Stats | undefined;

  const publish = (reading: Reading<Checkpoint>, at: number) => {
    last = reading;
    onReading(reading, at);
  };

  const fail = (problem: string, hint: string, at: number) => {
    if (problem === last.problem) return;
    problems.failed(problem, 'cpu_manager_state unusable; keeping the last known assignments', { hint });
    publish({ value: last.value, problem }, at);
  };

  const read = () => {
    const at = performance.now();
    let text: string;
    try {
      lastStats = statSync(file);
      text = readBounded(file, MAX_CHECKPOINT_BYTES);
    } catch (error) {
      lastStats = undefined;
      lastText = undefined;
      fail(`cannot read ${file}: ${(error as Error).message}`, 'the kubelet writes it; check --kubelet-dir', at);
      return;
    }
    if (text === lastText) return;
    lastText = text;
    try {
      const value = parseCheckpoint(text);
      problems.recovered();
      publish({ value, problem: undefined }, at);
    } catch (error) {
      const hint =
        'the agent reads the file again when the kubelet writes it; if the problem stays, restart the kubelet';
      fail(`${file}: ${(error as Error).message}`, hint, at);
    }
  };

  const poll = () => {
    const now = statSync(file, { throwIfNoEntry: false });
    const same = now?.ino === lastStats?.ino && now?.mtimeMs === lastStats?.mtimeMs && now?.size === lastStats?.size;
    if (!same || now === undefined) read();
  };

  watchDirectory({
    path: directory,
    signal,
    onChange: (name) => {
      if (name === undefined || name === CHECKPOINT_FILE) read();
    },
  });
  if (last.value === undefined && last.problem === undefined) read();
  const timer = setInterval(poll, POLL_SECONDS * 1000);
  signal.addEventListener('abort', () => clearInterval(timer), { once: true });
}
