import { once } from 'node:events';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';

/** The view of a Service for its callers: one port, with the current server behind it. */
export interface Forwarder {
  readonly port: number;
  /** Connections that a target refused. Another target was tried, which no Service does. */
  readonly refused: number;
  stop(): Promise<void>;
}

/** Milliseconds between checks of the targets. */
const CHECK_MILLISECONDS = 10;

/** @param targets the ports on loopback, used in turn for new connections */
export async function startForwarder(targets: () => readonly number[]): Promise<Forwarder> {
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
    get refused() {
      return Atomics.load(refused, 0);
    },
    async stop() {
      clearInterval(timer);
      await thread.terminate();
    },
  };
}
