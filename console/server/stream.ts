import type { ServerResponse } from 'node:http';
import type { Writable } from 'node:stream';
import { constants, createGzip } from 'node:zlib';
import { WIRE_VERSION } from '../data/wire.ts';
import { endRecord, type Feed } from './feed.ts';

export interface StreamOptions {
  readonly feed: Pick<Feed, 'records' | 'complete' | 'watch'>;
  readonly response: ServerResponse;
  /** Whether the client accepts gzip, which reduces a snapshot of 5,000 nodes to a tenth. */
  readonly gzip: boolean;
  readonly beat?: number;
  readonly patience?: number;
}

const BEAT_MILLISECONDS = 5000;
const PATIENCE_MILLISECONDS = 60_000;
/** Approximate number of characters of one event. */
const EVENT_CHARACTERS = 32_768;

/** The next event is built when the socket took the last: for a slow page only keys are kept. */
export function streamEvents(options: StreamOptions): { close(): void } {
  const { feed, response, gzip, beat = BEAT_MILLISECONDS, patience = PATIENCE_MILLISECONDS } = options;
  const compressor = gzip ? createGzip({ level: 4 }) : undefined;
  const out: Writable = compressor ?? response;
  compressor?.pipe(response);
  compressor?.on('error', () => close());
  const unsent = new Set(feed.records.keys());
  let toldReady = false;
  let closed = false;
  /** Time since which the client has not read. */
  let waitsSince: number | undefined;

  response.writeHead(200, {
    'content-type': 'text/event-stream; charset=utf-8',
    ...(gzip ? { 'content-encoding': 'gzip' } : {}),
  });

  const write = (event: string, data: string): boolean => out.write(`event: ${event}\ndata: ${data}\n\n`);
  const flush = () => compressor?.flush(constants.Z_SYNC_FLUSH);

  const nextEvent = (): string => {
    const parts: string[] = [];
    let length = 0;
    for (const key of unsent) {
      unsent.delete(key);
      const json = feed.records.get(key) ?? endRecord(key);
      parts.push(json);
      length += json.length;
      if (length >= EVENT_CHARACTERS) break;
    }
    return `[${parts.join(',')}]`;
  };

  function pump(): void {
    if (closed || waitsSince !== undefined) return;
    let taken = true;
    while (taken && unsent.size > 0) taken = write('message', nextEvent());
    if (taken && !toldReady && feed.complete) {
      toldReady = true;
      taken = write('ready', '{}');
    }
    flush();
    if (!taken) waitForDrain();
  }
  function waitForDrain(): void {
    waitsSince = performance.now();
    out.once('drain', () => {
      waitsSince = undefined;
      pump();
    });
  }

  const unwatch = feed.watch((keys) => {
    for (const key of keys) unsent.add(key);
    pump();
  });
  const heart = setInterval(() => {
    if (waitsSince === undefined) {
      if (!write('beat', '{}')) waitForDrain();
      flush();
    } else if (performance.now() - waitsSince > patience) response.destroy();
  }, beat);
  heart.unref();

  function close(): void {
    if (closed) return;
    closed = true;
    clearInterval(heart);
    unwatch();
    compressor?.destroy();
    response.destroy();
  }
  response.once('close', close);

  write('hello', JSON.stringify({ wire: WIRE_VERSION }));
  pump();
  return { close };
}
