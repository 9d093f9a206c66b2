import { get } from 'node:http';
import { createGunzip } from 'node:zlib';

export interface SentEvent {
  readonly event: string;
  readonly data: string;
}

/** A client of the console's events, like a browser. */
export interface Listener {
  readonly events: readonly SentEvent[];
  /** Bytes received over the network. */
  readonly bytes: number;
  /** Resolves with the first matching event from the `from`th on. */
  until(accepts: (event: SentEvent) => boolean, from?: number): Promise<SentEvent>;
  /** Pauses or resumes reading. */
  pause(): void;
  resume(): void;
  readonly ended: Promise<void>;
  close(): void;
}

export function listen(url: string, headers: Record<string, string> = {}): Promise<Listener> {
  return new Promise((resolve, reject) => {
    const request = get(url, { headers, agent: false }, (response) => {
      const events: SentEvent[] = [];
      const waiting = new Set<() => void>();
      let bytes = 0;
      let text = '';
      response.on('data', (chunk: Buffer) => {
        bytes += chunk.length;
      });
      const body = response.headers['content-encoding'] === 'gzip' ? response.pipe(createGunzip()) : response;
      body.setEncoding('utf8').on('data', (chunk: string) => {
        text += chunk;
        const blocks = text.split('\n\n');
        text = blocks.pop() ?? '';
        events.push(...blocks.map(parsed));
        for (const look of waiting) look();
      });
      body.on('error', () => undefined);
      const ended = new Promise<void>((done) => response.once('close', done));
      resolve({
        events,
        get bytes() {
          return bytes;
        },
        until: (accepts, from = 0) =>
          new Promise((found) => {
            const look = () => {
              const event = events.slice(from).find(accepts);
              if (event === undefined) return;
              waiting.delete(look);
              found(event);
            };
            waiting.add(look);
            look();
          }),
        pause: () => response.socket.pause(),
        resume: () => response.socket.resume(),
        ended,
        close: () => request.destroy(),
      });
    });
    request.once('error', reject);
  });
}

function parsed(block: string): SentEvent {
  const fields = new Map(
    block.split('\n').map((line) => {
      const colon = line.indexOf(': ');
      return [line.slice(0, colon), line.slice(colon + 2)];
    }),
  );
  return { event: fields.get('event') ?? 'message', data: fields.get('data') ?? '' };
}
