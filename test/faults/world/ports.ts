import { createServer } from 'node:net';

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
