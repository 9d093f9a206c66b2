import { type FSWatcher, type Stats, statSync, watch } from 'node:fs';
import { basename } from 'node:path';

/** Seconds between looks at whether the watched directory is still the one at its path; and while it is missing. */
const CHECK = 5;
const CHECK_ABSENT = 0.5;

export interface DirectoryWatchOptions {
  readonly path: string;
  /**
   * Called with the name of the entry that changed, or undefined when anything may have: the directory was missing and
   * is there, was replaced, or the system lost events.
   */
  readonly onChange: (name: string | undefined) => void;
  readonly signal: AbortSignal;
}

/**
 * Watches a directory until the signal aborts. The directory rather than a file in it, because a watch on a file ends
 * with the first atomic replacement; and its path rather than its inode, because a directory may be removed and made
 * again. Events may come twice: they say "look", not "this happened".
 */
export function watchDirectory({ path, onChange, signal }: DirectoryWatchOptions): void {
  let watcher: FSWatcher | undefined;
  let timer: NodeJS.Timeout | undefined;
  let watched: Stats | undefined;

  const close = () => {
    watcher?.close();
    watcher = undefined;
    watched = undefined;
  };

  const open = (now: Stats) => {
    try {
      const opened = watch(path, (_event, name) => {
        // The directory's own name means that it was removed or moved, unless an entry is called the same.
        if (name === basename(path)) check();
        onChange(name ?? undefined);
      });
      opened.on('error', close);
      watcher = opened;
      watched = now;
      onChange(undefined);
    } catch {
      // It went away in between; the next check finds out.
      close();
    }
  };

  const check = () => {
    clearTimeout(timer);
    if (signal.aborted) return;
    const now = directoryAt(path);
    if (now === undefined) {
      if (watcher !== undefined) {
        close();
        onChange(undefined);
      }
    } else if (watcher === undefined || watched?.ino !== now.ino || watched.dev !== now.dev) {
      close();
      open(now);
    }
    timer = setTimeout(check, (watcher === undefined ? CHECK_ABSENT : CHECK) * 1000);
  };

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

function directoryAt(path: string): Stats | undefined {
  try {
    const now = statSync(path);
    return now.isDirectory() ? now : undefined;
  } catch {
    return undefined;
  }
}
