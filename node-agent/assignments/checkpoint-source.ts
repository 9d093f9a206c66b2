import { statSync } from 'node:fs';
import { join } from 'node:path';
import { ProblemLog } from '../../runtime/problem-log.ts';
import { everyTick } from '../../runtime/time.ts';
import { readBounded } from '../files/bounded-file.ts';
import { watchDirectory } from '../files/watch-directory.ts';
import type { Guard } from '../lifecycle/duty.ts';
import type { AgentLogger, AgentMessages } from '../telemetry/log-messages.ts';
import { CHECKPOINT_FILE, type Checkpoint, MAX_CHECKPOINT_BYTES, parseCheckpoint } from './checkpoint.ts';
import type { Reading } from './view.ts';

/** Seconds between reads of the file in case an event was lost. */
const POLL_SECONDS = 10;

export interface CheckpointSourceDeps {
  readonly directory: string;
  readonly log: AgentLogger;
  /** Called with each new reading; `at` is when this process learned of it, in monotonic milliseconds. */
  readonly onReading: (reading: Reading<Checkpoint>, at: number) => void;
}

/**
 * The kubelet's checkpoint of CPUs. Owner: the kubelet, which renames a new file over it. Age: an event of the
 * directory, at most 10 s without one. End: the next file; while that is unusable, the last good content stays with a
 * problem.
 */
export class CheckpointSource {
  readonly #deps: CheckpointSourceDeps;
  readonly #file: string;
  readonly #problems: ProblemLog<AgentMessages>;
  #last: Reading<Checkpoint> = { value: undefined, problem: undefined };
  /** The text of the last reading; undefined while the file cannot be read. */
  #text: string | undefined;
  /** Inode, size and time of the file at the last read. */
  #version: string | undefined;

  constructor(deps: CheckpointSourceDeps) {
    this.#deps = deps;
    this.#file = join(deps.directory, CHECKPOINT_FILE);
    this.#problems = new ProblemLog(deps.log, { file: this.#file });
  }

  follow(guard: Guard, signal: AbortSignal): void {
    const onChange = guard.wrap((name: string | undefined) => {
      if (name === undefined || name === CHECKPOINT_FILE) this.read();
    });
    watchDirectory({ path: this.#deps.directory, signal, onChange, log: this.#deps.log });
    if (this.#last.value === undefined && this.#last.problem === undefined) guard.wrap(() => this.read())();
    const poll = guard.wrap(() => {
      if (this.#version === undefined || versionOf(this.#file) !== this.#version) this.read();
    });
    signal.addEventListener('abort', everyTick(POLL_SECONDS, poll), { once: true });
  }

  /** Reads synchronously: until it is read, OVS stays on a CPU that has a new owner. */
  read(): void {
    const at = performance.now();
    let text: string;
    try {
      this.#version = versionOf(this.#file);
      text = readBounded(this.#file, MAX_CHECKPOINT_BYTES);
    } catch (error) {
      this.#version = undefined;
      this.#text = undefined;
      const problem = `cannot read ${this.#file}: ${(error as Error).message}`;
      this.#fail(problem, 'the kubelet writes it; check the mount of its directory', at);
      return;
    }
    if (text === this.#text) return;
    this.#text = text;
    let value: Checkpoint;
    try {
      value = parseCheckpoint(text);
    } catch (error) {
      const hint =
        'the agent reads the file again when the kubelet writes it; if the problem stays, restart the kubelet';
      this.#fail(`${this.#file}: ${(error as Error).message}`, hint, at);
      return;
    }
    this.#problems.recovered();
    this.#publish({ value, problem: undefined }, at);
  }

  #fail(problem: string, hint: string, at: number): void {
    if (problem === this.#last.problem) return;
    this.#problems.failed(problem, 'cpu_manager_state unusable; keeping the last known assignments', { hint });
    this.#publish({ value: this.#last.value, problem }, at);
  }

  #publish(reading: Reading<Checkpoint>, at: number): void {
    this.#last = reading;
    this.#deps.onReading(reading, at);
  }
}

/** Undefined if the file cannot be read now, for whatever reason: reading it names the reason. */
function versionOf(file: string): string | undefined {
  try {
    const { ino, mtimeMs, size } = statSync(file);
    return `${ino} ${mtimeMs} ${size}`;
  } catch {
    return undefined;
  }
}
