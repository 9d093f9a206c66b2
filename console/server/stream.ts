import type { ServerResponse } from 'node:http';
import type { Writable } from 'node:stream';
import { constants, createGzip, type Gzip } from 'node:zlib';
import { WIRE_VERSION } from '../data/wire.ts';
import { endRecord, type Feed } from './feed.ts';

interface StreamOptions {
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

/**
 * One page's stream of records. The next event is built when the socket took the last: for a slow page only keys are
 * kept. It ends with the connection, which is closed if the page has not read for `patience` milliseconds.
 */
export class EventStream {
  readonly #feed: StreamOptions['feed'];
  readonly #response: ServerResponse;
  readonly #compressor: Gzip | undefined;
  readonly #unsent: Set<string>;
  readonly #unwatch: () => void;
  readonly #heart: NodeJS.Timeout;
  #mode: 'filling' | 'ready' | 'closed' = 'filling';
  /** Monotonic time since which the client has not read. */
  #waitingSinceMilliseconds: number | undefined;

  constructor({ feed, response, gzip, beat = BEAT_MILLISECONDS, patience = PATIENCE_MILLISECONDS }: StreamOptions) {
    this.#feed = feed;
    this.#response = response;
    this.#compressor = gzip ? createGzip({ level: 4 }) : undefined;
    this.#compressor?.pipe(response);
    this.#compressor?.on('error', () => this.close());
    this.#unsent = new Set(feed.records.keys());
    const type = { 'content-type': 'text/event-stream; charset=utf-8' };
    response.writeHead(200, gzip ? { ...type, 'content-encoding': 'gzip' } : type);
    this.#unwatch = feed.watch((keys) => {
      for (const key of keys) this.#unsent.add(key);
      this.#pump();
    });
    this.#heart = setInterval(() => this.#beat(patience), beat);
    this.#heart.unref();
    response.once('close', () => this.close());
    this.#write('hello', JSON.stringify({ wire: WIRE_VERSION }));
    this.#pump();
  }

  close(): void {
    if (this.#mode === 'closed') return;
    this.#mode = 'closed';
    clearInterval(this.#heart);
    this.#unwatch();
    this.#compressor?.destroy();
    this.#response.destroy();
  }

  #pump(): void {
    if (this.#mode === 'closed' || this.#waitingSinceMilliseconds !== undefined) return;
    let isAccepted = true;
    while (isAccepted && this.#unsent.size > 0) isAccepted = this.#write('message', this.#nextEvent());
    if (isAccepted && this.#mode === 'filling' && this.#feed.complete) {
      this.#mode = 'ready';
      isAccepted = this.#write('ready', '{}');
    }
    this.#flush();
    if (!isAccepted) this.#waitForDrain();
  }

  #beat(patienceMilliseconds: number): void {
    if (this.#waitingSinceMilliseconds === undefined) {
      if (!this.#write('beat', '{}')) this.#waitForDrain();
      this.#flush();
    } else if (performance.now() - this.#waitingSinceMilliseconds > patienceMilliseconds) this.#response.destroy();
  }

  get #out(): Writable {
    return this.#compressor ?? this.#response;
  }

  #write(event: string, data: string): boolean {
    return this.#out.write(`event: ${event}\ndata: ${data}\n\n`);
  }

  #flush(): void {
    this.#compressor?.flush(constants.Z_SYNC_FLUSH);
  }

  #waitForDrain(): void {
    this.#waitingSinceMilliseconds = performance.now();
    this.#out.once('drain', () => {
      this.#waitingSinceMilliseconds = undefined;
      this.#pump();
    });
  }

  #nextEvent(): string {
    const parts: string[] = [];
    let length = 0;
    for (const key of this.#unsent) {
      this.#unsent.delete(key);
      const json = this.#feed.records.get(key) ?? endRecord(key);
      parts.push(json);
      length += json.length;
      if (length >= EVENT_CHARACTERS) break;
    }
    return `[${parts.join(',')}]`;
  }
}
