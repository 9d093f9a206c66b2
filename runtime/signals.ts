import { setMaxListeners } from 'node:events';

/**
 * Runs work under its own signal, which aborts with the first of the given signals, after the given seconds, and when
 * the work ends, so that nothing started under it continues. It leaves no listener on the given signals:
 * AbortSignal.any leaks about 80 bytes into each of its sources for the life of that source (Node.js 20), which in a
 * daemon is forever.
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
    // One listener for each call that is running; this is not a leak.
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
