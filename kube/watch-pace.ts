import { Backoff, sleep, underSignals } from '../runtime/time.ts';
import { isExpired, KubeError } from './client.ts';
import type { DecoderOptions } from './object-decoder.ts';

/** Seconds until a watch ends by itself, plus up to half as much at random to spread the daemons. */
const WATCH_SECONDS = 290;
/** Seconds without an event or a bookmark after which a watch is opened again. */
const SILENCE_SECONDS = 120;
/** Seconds by which a watch may outlive its timeout. */
const OVERTIME_SECONDS = 30;
/**
 * Timeout of the watch after a silent one. The API server sends a bookmark about every minute and 2 s before the end,
 * but only if the kind has had a change since (staging/src/k8s.io/apiserver/pkg/storage/cacher/cache_watcher.go, 1.36).
 */
const PROOF_SECONDS = 10;

/** A watch that ends within so many seconds without an event ended at once. */
const SHORT_WATCH_SECONDS = 1;
/** Watches in a row that may end at once without a wait: one that a server closed, and the next whose version expired. */
const MAX_FREE_ENDS = 2;

/** Seconds between two log lines about one outage, and after a line until one about a new outage. */
const OUTAGE_LOG_SECONDS = 600;
const NEW_OUTAGE_LOG_SECONDS = 60;

/**
 * The deadlines of watches, and the pauses between them.
 * A connection can freeze without an error, so watches need deadlines here. The pauses keep a proxy that closes watches,
 * or an API server whose versions expire, from getting requests without a pause. After other failures the caller waits.
 */
export function createWatchPace({ path, log, now }: Pick<DecoderOptions<never, never>, 'path' | 'log' | 'now'>) {
  const backoff = new Backoff();
  const outages = createOutageLog({ path, log, now });
  let hasEvents = false;
  let heardAt = now();
  /** Whether nothing has arrived since a watch was silent. */
  let isSilent = false;
  /** Watches in a row that ended at once without an event. */
  let fruitless = 0;
  /** When the first watch began that ended at once and was logged. */
  let endingSince: number | undefined;

  const pauseAfter = async (begun: number, signal: AbortSignal): Promise<void> => {
    if (hasEvents || now() - begun >= SHORT_WATCH_SECONDS) {
      fruitless = 0;
      backoff.reset();
      if (endingSince !== undefined)
        log.info({ path, lastedSeconds: Math.round(begun - endingSince) }, 'list and watch work again');
      endingSince = undefined;
      return;
    }
    if (++fruitless <= MAX_FREE_ENDS) return;
    const wait = backoff.next();
    endingSince ??= begun;
    log.warn({ path, waitSeconds: Math.round(wait) }, 'watches end at once; keeping the cache and retrying');
    await sleep(wait, signal).catch(() => undefined);
  };

  type Work = (signal: AbortSignal) => Promise<void>;
  const withDeadline = async (watch: Work, endsAt: number, signal: AbortSignal): Promise<void> => {
    const late = new AbortController();
    let timer: NodeJS.Timeout | undefined;
    const check = () => {
      const secondsLeft = Math.min(heardAt + SILENCE_SECONDS, endsAt + OVERTIME_SECONDS) - now();
      if (secondsLeft > 0) timer = setTimeout(check, secondsLeft * 1000).unref();
      else late.abort();
    };
    check();
    try {
      await underSignals([signal, late.signal], undefined, watch);
    } catch (error) {
      if (!late.signal.aborted || signal.aborted) throw error;
      isSilent = true;
      log.debug(
        { path, silentSeconds: Math.round(now() - heardAt) },
        'watch without events or past its timeout; opening it again',
      );
    } finally {
      clearTimeout(timer);
    }
  };

  return {
    /** The watch had an event, or a list arrived. */
    received() {
      hasEvents = true;
      isSilent = false;
      heardAt = now();
      outages.ended();
    },
    /** A list or a watch failed. */
    failed: outages.failed,
    /**
     * Runs one watch under a signal that ends it when it is silent or outlives its timeout. If it ends at once, like
     * others before it, it waits before it returns or throws.
     * @returns whether the next watch may continue; otherwise two in a row were silent, and only a list proves anything
     * @throws what the watch throws
     */
    async follow(watch: (signal: AbortSignal, timeoutSeconds: number) => Promise<void>, signal: AbortSignal) {
      hasEvents = false;
      const wasSilent = isSilent;
      const begun = now();
      heardAt = begun;
      const timeoutSeconds = wasSilent ? PROOF_SECONDS : Math.round(WATCH_SECONDS * (1 + Math.random() / 2));
      try {
        await withDeadline((own) => watch(own, timeoutSeconds), begun + timeoutSeconds, signal);
        await pauseAfter(begun, signal);
        return hasEvents || !wasSilent;
      } catch (error) {
        if (isExpired(error)) await pauseAfter(begun, signal);
        else fruitless = 0;
        throw error;
      }
    },
  };
}

/** Logs the beginning and the end of an outage, not each attempt. */
function createOutageLog({ path, log, now }: Pick<DecoderOptions<never, never>, 'path' | 'log' | 'now'>) {
  let since: number | undefined;
  let loggedAt = Number.NEGATIVE_INFINITY;
  let isLogged = false;
  return {
    failed(err: unknown): void {
      const pause = since === undefined ? NEW_OUTAGE_LOG_SECONDS : OUTAGE_LOG_SECONDS;
      since ??= now();
      if (now() - loggedAt < pause) return;
      loggedAt = now();
      isLogged = true;
      log.warn({ err, path }, 'list or watch failed; keeping the cache and retrying');
    },
    ended(): void {
      if (isLogged && since !== undefined)
        log.info({ path, lastedSeconds: Math.round(now() - since) }, 'list and watch work again');
      since = undefined;
      isLogged = false;
    },
  };
}

const NEWLINE = 0x0a;

const textOf = ({ buffer, byteOffset, length }: Uint8Array) => Buffer.from(buffer, byteOffset, length).toString('utf8');

/**
 * Splits a stream into lines: the API server sends watch events as one JSON object each. It drops an incomplete last
 * line. It reads each byte once, even if a line is split over many chunks.
 * @param longest bytes of a line
 * @throws KubeError `TooLarge`
 */
export async function* lines(stream: AsyncIterable<Uint8Array>, longest: number): AsyncGenerator<string> {
  let parts: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of stream) {
    let from = 0;
    for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, from)) {
      // Most lines are in one chunk and need no copy.
      const last = chunk.subarray(from, end);
      const line = parts.length === 0 ? textOf(last) : textOf(Buffer.concat([...parts, last]));
      [parts, size, from] = [[], 0, end + 1];
      if (line !== '') yield line;
    }
    if (from < chunk.length) parts.push(chunk.subarray(from));
    size += chunk.length - from;
    if (size > longest) throw new KubeError(0, 'TooLarge', `a watch event is larger than ${longest} bytes`);
  }
}
