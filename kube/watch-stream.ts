import * as z from 'zod';
import { underSignals } from '../runtime/time.ts';
import { type KubeClient, KubeError, type RequestOptions } from './client.ts';

/** Seconds until a watch ends by itself, plus up to half as much at random to spread the daemons. */
const WATCH_SECONDS = 290;
/**
 * Seconds without an event after which a watch is given up: a connection can freeze without an error. The API server
 * sends a bookmark about every minute, but only if the kind has had a change since
 * (staging/src/k8s.io/apiserver/pkg/storage/cacher/cache_watcher.go, 1.36).
 */
const SILENCE_SECONDS = 120;
/** Seconds by which a watch may outlive its timeout. */
const OVERTIME_SECONDS = 30;
const MAX_EVENT_BYTES = 16 * 1024 * 1024;

const text = z.string().optional();
const watchEvent = z.object({
  type: z.enum(['ADDED', 'MODIFIED', 'DELETED', 'BOOKMARK', 'ERROR']),
  object: z.looseObject({
    metadata: z.looseObject({ name: text, namespace: text, resourceVersion: text }).optional(),
    code: z.number().optional(),
    message: text,
  }),
});
export type WatchEvent = z.infer<typeof watchEvent>;

interface WatchOptions {
  readonly client: KubeClient;
  readonly path: string;
  readonly query: RequestOptions['query'];
  readonly signal: AbortSignal;
  /** Takes each event; `true` ends the watch. */
  readonly take: (event: WatchEvent) => Promise<boolean>;
}

/**
 * Follows one watch until it ends.
 * @returns false if it was given up, because it was silent or outlived its timeout: only a list proves anything then
 * @throws KubeError also for an ERROR event
 */
export async function followWatch({ client, path, query, signal, take }: WatchOptions): Promise<boolean> {
  const timeoutSeconds = Math.round(WATCH_SECONDS * (1 + Math.random() / 2));
  const late = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  const listen = () => {
    clearTimeout(timer);
    timer = setTimeout(() => late.abort(), SILENCE_SECONDS * 1000).unref();
  };
  const end = setTimeout(() => late.abort(), (timeoutSeconds + OVERTIME_SECONDS) * 1000).unref();
  listen();
  try {
    await underSignals([signal, late.signal], undefined, async (watchSignal) => {
      const allQuery = { ...query, allowWatchBookmarks: true, timeoutSeconds };
      const stream = await client.watch(path, { query: allQuery, signal: watchSignal });
      for await (const line of lines(stream, MAX_EVENT_BYTES)) {
        const event = watchEvent.parse(JSON.parse(line));
        const { code = 0, message = 'error event' } = event.object;
        if (event.type === 'ERROR') throw new KubeError(code, 'WatchError', `watch ${path}: ${message}`);
        listen();
        if (await take(event)) return;
      }
    });
    return true;
  } catch (error) {
    if (!late.signal.aborted || signal.aborted) throw error;
    return false;
  } finally {
    clearTimeout(timer);
    clearTimeout(end);
  }
}

const NEWLINE = 0x0a;

const textOf = ({ buffer, byteOffset, length }: Uint8Array) => Buffer.from(buffer, byteOffset, length).toString('utf8');

/** Reads each byte once; drops an incomplete last line. @param longest bytes @throws KubeError `TooLarge` */
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
