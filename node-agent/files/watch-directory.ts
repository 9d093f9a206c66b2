import { type FSWatcher, type Stats, statSync, watch } from 'node:fs';
import { basename, dirname } from 'node:path';
import { resultOrNone } from '../../model/json.ts';
import { ProblemLog } from '../../runtime/problem-log.ts';
import { everyTick, secondsUntilTick } from '../../runtime/time.ts';
import type { AgentLogger, AgentMessages } from '../telemetry/log-messages.ts';
import { unlessMissing } from './bounded-file.ts';

/** Seconds between checks that the watched directory is still the one at its path. */
const CHECK_SECONDS = 30;
/** Seconds between checks while it is missing: the longest that is at most a fifth of its absence. */
const ABSENT_CHECK_SECONDS = [10, 5, 2, 1];
const FIRST_ABSENT_CHECK_SECONDS = 0.5;

export interface DirectoryWatchOptions {
  readonly path: string;
  /** `name`: the entry that changed; undefined if any may have (the directory was replaced, events were lost). */
  readonly onChange: (name: string | undefined) => void;
  readonly signal: AbortSignal;
  /** For an existing directory that cannot be watched. */
  readonly log: AgentLogger;
}

/**
 * Watches the directory at a path: a watch on a file ends with its first atomic replacement, and a directory may be
 * created again. Events may repeat: an event means "read again". While an existing directory cannot be watched (no
 * descriptors, no inotify watches left), each check counts as an event. It ends with the signal.
 */
export function watchDirectory(options: DirectoryWatchOptions): void {
  const directory = new WatchedDirectory(options);
  options.signal.addEventListener('abort', () => directory.end(), { once: true });
  directory.check();
}

/** Seconds between reads without an event. */
const POLL_SECONDS = 10;

interface FollowedFiles extends Pick<DirectoryWatchOptions, 'signal' | 'log'> {
  readonly directory: string;
  readonly isFile: (name: string) => boolean;
  /** Whether to read without an event. */
  readonly isDue: () => boolean;
  readonly read: () => void;
}

/** Reads files of a directory at once, after each event of one of them, and every ten seconds while that is due. */
export function followFiles({ directory, isFile, isDue, read, signal, log }: FollowedFiles): void {
  const onChange = (name: string | undefined) => {
    if (name === undefined || isFile(name)) read();
  };
  watchDirectory({ path: directory, signal, onChange, log });
  // While the directory is missing, nothing else reads it.
  read();
  const poll = () => {
    if (isDue()) read();
  };
  signal.addEventListener('abort', everyTick(POLL_SECONDS, poll), { once: true });
}

class WatchedDirectory {
  readonly #options: DirectoryWatchOptions;
  readonly #problems: ProblemLog<AgentMessages>;
  /** The watch and the directory that it watches; undefined while there is none. */
  #watch: { readonly watcher: FSWatcher; readonly stats: Stats } | undefined;
  /** While there is none: the directory above it tells when it is created. Checks find it where that is missing, too. */
  #parent: FSWatcher | undefined;
  #timer: NodeJS.Timeout | undefined;
  /** Monotonic milliseconds. */
  #absentSince = performance.now();

  constructor(options: DirectoryWatchOptions) {
    this.#options = options;
    this.#problems = new ProblemLog(options.log, { directory: options.path });
  }

  check(): void {
    if (this.#options.signal.aborted) return;
    let mayHaveChanged: boolean;
    try {
      mayHaveChanged = this.#update();
      this.#problems.recovered();
    } catch (error) {
      this.#problems.failed(error, 'watching a directory failed; polling it');
      this.#close();
      mayHaveChanged = true;
    }
    if (this.#watch === undefined) this.#watchParent();
    else this.#closeParent();
    const absent = (performance.now() - this.#absentSince) / 1000;
    const absentPeriod = ABSENT_CHECK_SECONDS.find((period) => period <= absent / 5) ?? FIRST_ABSENT_CHECK_SECONDS;
    const isWatched = this.#watch !== undefined || (this.#parent !== undefined && absent > CHECK_SECONDS);
    this.#checkIn(isWatched ? CHECK_SECONDS : absentPeriod);
    if (mayHaveChanged) this.#options.onChange(undefined);
  }

  end(): void {
    clearTimeout(this.#timer);
    this.#close();
    this.#closeParent();
  }

  #watchParent(): void {
    const { path } = this.#options;
    this.#parent ??= resultOrNone(() =>
      watch(dirname(path), (_event, name) => {
        if (name === basename(path)) this.check();
      }).on('error', () => this.#closeParent()),
    );
  }

  #closeParent(): void {
    this.#parent?.close();
    this.#parent = undefined;
  }

  #checkIn(seconds: number): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.check(), 1000 * secondsUntilTick(seconds));
  }

  /** @returns whether any entry may have changed unnoticed @throws a system error if it exists and cannot be watched */
  #update(): boolean {
    const before = this.#watch;
    const now = unlessMissing(() => statSync(this.#options.path));
    if (now?.isDirectory() === true && before?.stats.ino === now.ino && before.stats.dev === now.dev) return false;
    this.#close();
    if (now?.isDirectory() === true) this.#open(now);
    return before !== undefined || this.#watch !== undefined;
  }

  #open(stats: Stats): void {
    const { path, onChange } = this.#options;
    // If the directory was removed in between, the next check finds out.
    const watcher = unlessMissing(() =>
      watch(path, (_event, name) => {
        // The directory's own name means that it was removed or moved, unless an entry has the same name.
        if (name === basename(path)) this.check();
        onChange(name ?? undefined);
      }),
    );
    if (watcher === undefined) return;
    this.#watch = { watcher, stats };
    watcher.on('error', () => {
      this.#close();
      this.#checkIn(FIRST_ABSENT_CHECK_SECONDS);
    });
  }

  #close(): void {
    if (this.#watch === undefined) return;
    this.#watch.watcher.close();
    this.#watch = undefined;
    this.#absentSince = performance.now();
  }
}
