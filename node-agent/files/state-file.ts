import { renameSync, rmSync } from 'node:fs';
import { errorText } from '../../model/errors.ts';
import { ProblemLog } from '../../runtime/problem-log.ts';
import type { AgentLogger, AgentMessages } from '../telemetry/log-messages.ts';
import { readBounded, SavedFormatError, saveFile, unlessMissing } from './bounded-file.ts';

/** Seconds between attempts to read or write after a failure: a disk that was full heals within 30 s. */
const RETRY_SECONDS = 10;

/** Set in memory alone: `unread`, since the file is not known; `unsaved`, since the last write failed. */
export type StateFileMode = 'unread' | 'unsaved' | 'current';

export type OnFileProblem = (path: string, problem: string | undefined) => void;

interface StateFileOptions<Value> {
  readonly path: string;
  readonly maxBytes: number;
  /** Permissions; by default it is for the agent alone. */
  readonly permissions?: number;
  readonly format: (value: Value) => string;
  /** Undefined for a value that no longer applies, as after a reboot. @throws Error if the text is corrupt */
  readonly parse: (text: string) => Value | undefined;
  /**
   * What to remember if a value was set before the file could be read. By default what was set last counts, and the
   * saved value is overwritten.
   */
  readonly merge?: (saved: Value | undefined, setMeanwhile: Value | undefined) => Value | undefined;
  /** Called when `problem` may have changed. It must not throw. */
  readonly onProblem?: OnFileProblem | undefined;
  readonly log: AgentLogger;
}

/**
 * A value that outlives the agent. No method throws.
 *
 * Owner: the part of the agent that sets it, while the agent holds its lock; nothing is read or written before `load`.
 * Age: as new as the last `set`. It counts as saved after the rename, and a failed write or removal is repeated until
 * it succeeds or a newer value supersedes it. A corrupt file, or one of a later format, is put aside, and its value is
 * `lost`. One that cannot be read now (EIO, EACCES, EMFILE, not a regular file, too large) stays as it is and is read
 * again; until then nothing is written.
 * End: `set(undefined)` removes the file. The signal of `load` ends the attempts, with a last one for an unsaved value.
 */
export class StateFile<Value> {
  readonly #options: StateFileOptions<Value>;
  readonly #problems: ProblemLog<AgentMessages>;
  #mode: StateFileMode = 'unread';
  #value: Value | undefined;
  /** Whether the value was set, not only read. */
  #isSet = false;
  /** The text of the value, of the last attempt to write one, and of the file; undefined for no file. */
  #text: string | undefined;
  #triedText: string | undefined;
  #savedText: string | undefined;
  #problem: string | undefined;
  #loss: string | undefined;
  #signal: AbortSignal | undefined;
  #onLate: (() => void) | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: StateFileOptions<Value>) {
    this.#options = options;
    this.#problems = new ProblemLog(options.log, { file: options.path });
  }

  get mode(): StateFileMode {
    return this.#mode;
  }

  /** Undefined if nothing is remembered. */
  get value(): Value | undefined {
    return this.#value;
  }

  /** Why the file cannot be read or written now. */
  get problem(): string | undefined {
    return this.#problem;
  }

  /** Why the saved value was unusable, and where its file is kept, until the value is removed. */
  get loss(): string | undefined {
    return this.#loss;
  }

  /**
   * Call it at the start of each run of the duty, which is after the agent's lock was acquired: earlier, another agent
   * still writes the file. A file that was read is not read again. Failures are repeated until the signal aborts.
   * @param onLate called once a file that cannot be read now has been read; it must not throw
   */
  load(signal: AbortSignal, onLate?: () => void): void {
    this.#signal = signal;
    this.#onLate = undefined;
    const end = () => {
      this.#cancelRetry();
      if (this.#mode === 'unsaved') this.#write();
    };
    signal.addEventListener('abort', end, { once: true });
    this.#attempt();
    this.#onLate = onLate;
  }

  /** Remembers the value, and writes it at once, unless that has been tried. Undefined removes the file. */
  set(value: Value | undefined): void {
    this.#keep(value);
    if (value === undefined) this.#loss = undefined;
    if (this.#mode === 'unread') return;
    const isTried = this.#mode === 'unsaved' && this.#text === this.#triedText;
    if (!isTried) this.#write();
  }

  #keep(value: Value | undefined): void {
    this.#value = value;
    this.#text = value === undefined ? undefined : this.#options.format(value);
    this.#isSet = true;
  }

  #attempt(): void {
    if (this.#mode === 'unread') this.#read();
    else if (this.#mode === 'unsaved') this.#write();
  }

  #read(): void {
    let saved: Value | undefined;
    try {
      saved = this.#readSaved();
    } catch (error) {
      this.#failed(error, 'reading a state file failed; retrying');
      return;
    }
    const { merge } = this.#options;
    if (!this.#isSet) this.#value = saved;
    else if (merge !== undefined) this.#keep(merge(saved, this.#value));
    this.#succeeded();
    if (this.#isSet) this.#write();
    this.#onLate?.();
  }

  /** @throws an error if the file cannot be read, nor put aside */
  #readSaved(): Value | undefined {
    const { path, maxBytes, parse, log } = this.#options;
    const text = unlessMissing(() => readBounded(path, maxBytes));
    if (text === undefined) return undefined;
    try {
      const value = parse(text);
      this.#savedText = text;
      return value;
    } catch (error) {
      const keptAs = `${path}.${error instanceof SavedFormatError ? 'later' : 'corrupt'}`;
      renameSync(path, keptAs);
      const reason = errorText(error);
      this.#loss = `${path}: ${reason} (kept as ${keptAs})`;
      log.warn({ file: path, reason, keptAs }, 'a state file is unusable; what it remembered is lost');
      return undefined;
    }
  }

  #write(): void {
    const { path, permissions } = this.#options;
    const text = this.#text;
    this.#triedText = text;
    try {
      if (text !== this.#savedText) {
        if (text === undefined) rmSync(path, { force: true });
        else saveFile(path, text, permissions === undefined ? {} : { mode: permissions });
        this.#savedText = text;
      }
      this.#succeeded();
    } catch (error) {
      this.#mode = 'unsaved';
      this.#failed(error, 'writing a state file failed; retrying');
    }
  }

  #succeeded(): void {
    this.#mode = 'current';
    this.#problem = undefined;
    this.#cancelRetry();
    this.#problems.recovered();
    this.#options.onProblem?.(this.#options.path, undefined);
  }

  #failed(error: unknown, warning: Parameters<ProblemLog<AgentMessages>['failed']>[1]): void {
    this.#problem = `${this.#options.path}: ${errorText(error)}`;
    this.#problems.failed(error, warning);
    this.#options.onProblem?.(this.#options.path, this.#problem);
    if (this.#signal?.aborted !== false) return;
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      this.#attempt();
    }, RETRY_SECONDS * 1000);
  }

  #cancelRetry(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }
}
