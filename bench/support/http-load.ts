import { Agent, type IncomingMessage, request } from 'node:http';
import { json } from 'node:stream/consumers';

/** The measured endpoint. */
export interface Target {
  readonly port: number;
  readonly path: string;
}

export interface LoadOptions {
  readonly calls: number;
  /** Number of concurrent calls, each on its own connection. */
  readonly concurrency: number;
  readonly body: Buffer;
}

export interface Client {
  /** Milliseconds of each call, in order of completion. @throws if a response is not 200 */
  load(options: LoadOptions): Promise<number[]>;
  /** One call; resolves with its answer. @throws if the response is not 200 or not JSON */
  ask(body: Buffer | string): Promise<unknown>;
  close(): void;
}

/** A client that keeps its connections open. */
export function createClient({ port, path }: Target): Client {
  const agent = new Agent({ keepAlive: true, maxSockets: 64 });

  const send = (body: Buffer | string) =>
    new Promise<IncomingMessage>((resolve, reject) => {
      const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) };
      const one = request({ host: '127.0.0.1', port, path, method: 'POST', agent, headers }, (response) => {
        if (response.statusCode === 200) return resolve(response);
        response.resume();
        reject(new Error(`${path} answered ${response.statusCode}`));
      });
      one.on('error', reject);
      one.end(body);
    });
  const call = async (body: Buffer) => {
    const response = await send(body);
    await new Promise<void>((resolve, reject) => void response.resume().on('end', resolve).on('error', reject));
  };

  return {
    async load({ calls, concurrency, body }) {
      const millis: number[] = [];
      let left = calls;
      const worker = async () => {
        while (left-- > 0) {
          const begun = performance.now();
          await call(body);
          millis.push(performance.now() - begun);
        }
      };
      await Promise.all(Array.from({ length: concurrency }, worker));
      return millis;
    },
    ask: async (body) => json(await send(body)),
    close: () => agent.destroy(),
  };
}

/** The q-th quantile, 0 to 1. */
export function quantile(values: readonly number[], q: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * q))] ?? Number.NaN;
}
