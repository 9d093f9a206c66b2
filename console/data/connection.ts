import { WIRE_VERSION, type WireRecord } from './wire.ts';

export type LineState = 'connecting' | 'live' | 'broken' | 'outdated';

export interface PageConnectionOptions {
  readonly onRecords: (records: readonly WireRecord[]) => void;
  /** The following records replace all earlier ones. */
  readonly onAnew: () => void;
  readonly onReady: () => void;
  /** @param lastMessage when the server was last heard, in milliseconds since 1970 */
  readonly onState: (state: LineState, lastMessage: number) => void;
}

/** Milliseconds without any event after which the connection counts as dead: three heartbeats. */
const SILENCE_MILLISECONDS = 16_000;
const RETRY_MILLISECONDS = 2000;

/**
 * The page's connection to its server. It gets all records again after an interruption; without any event or heartbeat
 * it reconnects. It ends with the page.
 */
export class PageConnection {
  readonly #options: PageConnectionOptions;
  #source: EventSource | undefined;
  // Not the monotonic clock, which stands still while the computer sleeps.
  #lastMessage = Date.now();
  #opened = this.#lastMessage;
  #retry: ReturnType<typeof setTimeout> | undefined;

  constructor(options: PageConnectionOptions) {
    this.#options = options;
    setInterval(() => this.#reopenIfSilent(), SILENCE_MILLISECONDS / 4);
    document.addEventListener('visibilitychange', () => this.#reopenIfSilent());
    this.#open();
  }

  #open(): void {
    clearTimeout(this.#retry);
    this.#source?.close();
    this.#opened = Date.now();
    const source = new EventSource('/events');
    this.#source = source;
    const { onRecords, onAnew, onReady, onState } = this.#options;
    const on = (event: string, act: (data: string) => void) =>
      source.addEventListener(event, ({ data }: MessageEvent<string>) => {
        this.#lastMessage = Date.now();
        act(data);
      });
    on('hello', (data) => {
      const { wire } = JSON.parse(data) as { readonly wire: number };
      if (wire === WIRE_VERSION) return onAnew();
      source.close();
      onState('outdated', this.#lastMessage);
    });
    on('message', (data) => onRecords(JSON.parse(data) as readonly WireRecord[]));
    on('ready', () => {
      onState('live', this.#lastMessage);
      onReady();
    });
    on('beat', () => undefined);
    source.addEventListener('error', () => {
      onState('broken', this.#lastMessage);
      // The browser stops retrying after an HTTP error, such as the one for too many open pages.
      source.close();
      this.#retry = setTimeout(() => this.#open(), RETRY_MILLISECONDS);
    });
  }

  #reopenIfSilent(): void {
    const isSilent = Date.now() - Math.max(this.#opened, this.#lastMessage) >= SILENCE_MILLISECONDS;
    if (this.#source?.readyState !== EventSource.OPEN || !isSilent) return;
    this.#options.onState('broken', this.#lastMessage);
    this.#open();
  }
}
