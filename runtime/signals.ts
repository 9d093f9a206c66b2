import { setMaxListeners } from 'node:events';

/**
 * Does a piece of work under a signal of its own: it is aborted with the first of the given ones, after so many seconds, and
 * at the end of the work, so that nothing that was begun under it goes on. Nothing stays with the given ones afterwards:
 * AbortSignal.any leaves some 80 bytes with each of its sources for as long as that lives (Node.js 20), which in a daemon is
 * for ever.
 *
 * @param seconds undefined: no limit
 */
export async function underSignals<T>(
  signals: readonly (AbortSignal | undefined)[],
  seconds: number | undefined,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const own = new AbortController();
  const leave: (() => void)[] = [];
  for (const signal of signals) {
    if (signal === undefined) continue;
    if (signal.aborted) own.abort(signal.reason);
    const follow = () => own.abort(signal.reason);
    // As many calls as are under way listen; that is no leak.
    setMaxListeners(0, signal);
    signal.addEventListener('abort', follow, { once: true });
    leave.push(() => signal.removeEventListener('abort', follow));
  }
  if (seconds !== undefined) {
    const late = () => own.abort(new DOMException('The operation was aborted due to timeout', 'TimeoutError'));
    const timer = setTimeout(late, seconds * 1000).unref();
    leave.push(() => clearTimeout(timer));
  }
  try {
    return await work(own.signal);
  } finally {
    for (const one of leave) one();
    own.abort();
  }
}
