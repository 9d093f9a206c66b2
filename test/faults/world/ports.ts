import { once } from 'node:events';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';

/** Below the range of outgoing connections, so that no other process takes the port while its daemon is down. */
const RANGE = { first: 12_000, last: 32_000 };
let next = RANGE.first + (process.pid % 1000) * 20;

/** A port on loopback for a daemon that keeps it over restarts. */
export async function lastingPort(): Promise<number> {
  for (;;) {
    const port = next++;
    if (next > RANGE.last) next = RANGE.first;
    if (await isFree(port)) return port;
  }
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
  });
}

/** Milliseconds between checks of the targets. */
const CHECK_MILLISECONDS = 10;

/**
 * The view of a Service for its callers: one port, with the current server behind it.
 * @param targets the ports on loopback, used in turn for new connections
 */
export async function startForwarder(targets: () => readonly number[]) {
  const thread = new Worker(join(import.meta.dirname, 'forwarder-thread.cjs'));
  const [{ port, refused }] = (await once(thread, 'message')) as [{ port: number; refused: Int32Array }];
  let announced = '';
  const look = () => {
    const ports = targets();
    if (announced === `${ports}`) return;
    announced = `${ports}`;
    thread.postMessage(ports);
  };
  look();
  const timer = setInterval(look, CHECK_MILLISECONDS);
  return {
    port,
    /** Connections that a target refused. Another target was tried, which no Service does. */
    get refused() {
      return Atomics.load(refused, 0);
    },
    async stop() {
      clearInterval(timer);
      await thread.terminate();
    },
  };
}
