import type { ServerResponse } from 'node:http';
import type { Writable } from 'node:stream';
import { constants, createGzip } from 'node:zlib';
import { WIRE_VERSION } from '../data/wire.ts';
import type { Feed } from './feed.ts';

export interface StreamOptions {
  readonly feed: Feed;
  readonly response: ServerResponse;
  /** Whether the client accepts gzip, which reduces a snapshot of 5,000 nodes to a tenth. */
  readonly gzip: boolean;
  /** The id of the client's last event, if any. */
  readonly lastId: string | undefined;
  /** Milliseconds between heartbeats. */
  readonly beat?: number;
  /** Milliseconds that a client may take to read before its connection is closed. */
  readonly patience?: number;
}

const BEAT = 5000;
const PATIENCE = 60_000;
/** Approximate number of characters of one event. */
const EVENT = 32_768;

/**
 * Server-sent events for one page. `hello` says whether the following records add to those on the page (`resumed`) or
 * replace them. Then follow records; each event has the id to resume from. `ready` marks the end of the snapshot, and
 * `beat` shows that the connection is alive.
 *
 * The next event is only built when the socket has accepted the last one, from the newest records. So a slow page has
 * no queue here, and something that changed ten times in between is sent once. A page that reads nothing is
 * disconnected, and catches up when it reconnects.
 */
export function streamEvents(options: StreamOptions): { close(): void } {
  const { feed, response, gzip, lastId, beat = BEAT, patience = PATIENCE } = options;
  const compressor = gzip ? createGzip({ level: 4 }) : undefined;
  const out: Writable = compressor ?? response;
  compressor?.pipe(response);
  compressor?.on('error', () => close());
  let epoch = '';
  let seen = 0;
  let toldReady = false;
  let closed = false;
  /** Time since which the client has not read. */
  let waitsSince: number | undefined;

  response.writeHead(200, {
    'content-type': 'text/event-stream; charset=utf-8',
    ...(gzip ? { 'content-encoding': 'gzip' } : {}),
  });

  const write = (event: string | undefined, data: string, id?: string): boolean => {
    const lines = [event && `event: ${event}`, id && `id: ${id}`, `data: ${data}`];
    return out.write(`${lines.filter(Boolean).join('\n')}\n\n`);
  };
  const flush = () => compressor?.flush(constants.Z_SYNC_FLUSH);

  const hello = (from: number) => {
    epoch = feed.epoch;
    seen = from;
    toldReady = false;
    write('hello', JSON.stringify({ wire: WIRE_VERSION, resumed: from > 0, nodes: feed.records.size }));
  };

  /** One event with the newest records; undefined if there are none. */
  const nextEvent = (): { readonly data: string; readonly last: number } | undefined => {
    const parts: string[] = [];
    let length = 0;
    let last = seen;
    for (const { seq, json } of feed.records.after(seen)) {
      parts.push(json);
      length += json.length;
      last = seq;
      if (length >= EVENT) break;
    }
    return parts.length === 0 ? undefined : { data: `[${parts.join(',')}]`, last };
  };

  const pump = (): void => {
    if (closed || waitsSince !== undefined) return;
    if (epoch !== feed.epoch || !feed.records.covers(seen)) hello(0);
    let taken = true;
    while (taken) {
      const event = nextEvent();
      if (event === undefined) break;
      seen = event.last;
      taken = write(undefined, event.data, `${epoch}.${seen}`);
    }
    if (taken && !toldReady && feed.complete) {
      toldReady = true;
      taken = write('ready', '{}');
    }
    flush();
    if (!taken) waitForDrain();
  };
  const waitForDrain = () => {
    waitsSince = performance.now();
    out.once('drain', () => {
      waitsSince = undefined;
      pump();
    });
  };

  const unwatch = feed.watch(pump);
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

  const [wantedEpoch = '', number = ''] = lastId?.split('.') ?? [];
  const from = /^[0-9]{1,15}$/.test(number) ? Number(number) : 0;
  const resumes = wantedEpoch === feed.epoch && from > 0 && feed.records.covers(from);
  hello(resumes ? from : 0);
  pump();
  return { close };
}
