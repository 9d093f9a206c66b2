import { type FSWatcher, type Stats, statSync, watch } from 'node:fs';
import { basename } from 'node:path';
import { resultOrNone } from '../../model/json.ts';

/** Seconds between checks that the watched directory is still the one at its path. */
const CHECK_SECONDS = 10;
/** Seconds between checks while it is missing: the longest that is at most a twentieth of its absence. */
const ABSENT_CHECK_SECONDS = [5, 2, 1];
const FIRST_ABSENT_CHECK_SECONDS = 0.5;

export interface DirectoryWatchOptions {
  readonly path: string;
  /** `name`: the entry that changed; undefined if any may have (the directory was replaced, events were lost). */
  readonly onChange: (name: string | undefined) => void;
  readonly signal: AbortSignal;
}

/**
 * Watches the directory at a path: a watch on a file ends with its first atomic replacement, and a directory may be
 * created again. Events may repeat: an event means "read again".
 */
export function watchDirectory({ path, onChange, signal }: DirectoryWatchOptions): void {
  let watcher: FSWatcher | undefined;
  let timer: NodeJS.Timeout | undefined;
  let watched: Stats | undefined;
  /** Monotonic milliseconds. */
  let absentSince = performance.now();

  const close = () => {
    if (watcher === undefined) return;
    watcher.close();
    absentSince = performance.now();
    watcher = undefined;
    watched = undefined;
  };

  const open = (now: Stats) => {
    try {
      const opened = watch(path, (_event, name) => {
        // The directory's own name means that it was removed or moved, unless an entry has the same name.
        if (name === basename(path)) check();
        onChange(name ?? undefined);
      });
      opened.on('error', close);
      watcher = opened;
      watched = now;
      onChange(undefined);
    } catch {
      // The directory was removed in between; the next check finds out.
      close();
    }
  };

  function check(): void {
    clearTimeout(timer);
    if (signal.aborted) return;
    const now = resultOrNone(() => statSync(path));
    if (now?.isDirectory() !== true) {
      if (watcher !== undefined) {
        close();
        onChange(undefined);
      }
    } else if (watcher === undefined || watched?.ino !== now.ino || watched.dev !== now.dev) {
      close();
      open(now);
    }
    const absent = (performance.now() - absentSince) / 1000;
    const absentPeriod = ABSENT_CHECK_SECONDS.find((period) => period <= absent / 20) ?? FIRST_ABSENT_CHECK_SECONDS;
    timer = setTimeout(check, 1000 * (watcher === undefined ? absentPeriod : CHECK_SECONDS));
  }

  signal.addEventListener(
    'abort',
    () => {
      clearTimeout(timer);
      close();
    },
    { once: true },
  );
  check();
}
