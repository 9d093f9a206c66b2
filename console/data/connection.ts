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

/** Gets all records again after an interruption; without any event or heartbeat it reconnects. */
export function connect({ onRecords, onAnew, onReady, onState }: PageConnectionOptions): void {
  let source: EventSource | undefined;
  // Not the monotonic clock, which stands still while the computer sleeps.
  let lastMessage = Date.now();
  let opened = lastMessage;
  let again: ReturnType<typeof setTimeout> | undefined;

  const open = () => {
    clearTimeout(again);
    source?.close();
    opened = Date.now();
    source = new EventSource('/events');
    const on = (event: string, act: (data: string) => void) =>
      source?.addEventListener(event, ({ data }: MessageEvent<string>) => {
        lastMessage = Date.now();
        act(data);
      });
    on('hello', (data) => {
      const { wire } = JSON.parse(data) as { readonly wire: number };
      if (wire === WIRE_VERSION) return onAnew();
      source?.close();
      onState('outdated', lastMessage);
    });
    on('message', (data) => onRecords(JSON.parse(data) as readonly WireRecord[]));
    on('ready', () => {
      onState('live', lastMessage);
      onReady();
    });
    on('beat', () => undefined);
    source.addEventListener('error', () => {
      onState('broken', lastMessage);
      // The browser stops retrying after an HTTP error, such as the one for too many open pages.
      source?.close();
      again = setTimeout(open, RETRY_MILLISECONDS);
    });
  };
  const look = () => {
    const isSilent = Date.now() - Math.max(opened, lastMessage) >= SILENCE_MILLISECONDS;
    if (source?.readyState !== EventSource.OPEN || !isSilent) return;
    onState('broken', lastMessage);
    open();
  };
  setInterval(look, SILENCE_MILLISECONDS / 4);
  document.addEventListener('visibilitychange', look);
  open();
}
