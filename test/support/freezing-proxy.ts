import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

/** What the proxy does with bytes: nothing more, or one byte of the server at each `drip`. */
export type Freeze = 'silent' | 'dripping';

/** A TCP proxy whose open connections can freeze without an error, as behind a failed load balancer. */
export interface FreezingProxy {
  readonly port: number;
  /** Connections so far. */
  readonly connections: number;
  /** Freezes the open connections permanently. New ones work. */
  freezeOpen(how: Freeze): void;
  /** Freezes the open connections permanently, and each new one until `thaw`. */
  freezeAll(): void;
  /** New connections work again. */
  thaw(): void;
  /** Passes one byte on each dripping connection to its client. */
  drip(): void;
  /** Breaks every open connection. */
  cut(): void;
  /** Breaks them and refuses new ones until `open`. */
  shut(): Promise<void>;
  open(): Promise<void>;
  stop(): Promise<void>;
}

export async function startFreezingProxy(targetPort: number): Promise<FreezingProxy> {
  const pairs = new Set<{ client: Socket; server: Socket; kept: Buffer[] | undefined }>();
  const clients = new Set<Socket>();
  let connections = 0;
  let isFrozen = false;
  const listener = createServer((client) => {
    connections++;
    clients.add(client);
    client.on('error', () => undefined).once('close', () => clients.delete(client));
    if (isFrozen) return void client.resume();
    const server = connect(targetPort, '127.0.0.1').on('error', () => undefined);
    const pair = { client, server, kept: undefined as Buffer[] | undefined };
    pairs.add(pair);
    client.on('data', (bytes) => pair.kept ?? server.write(bytes));
    server.on('data', (bytes) => (pair.kept === undefined ? client.write(bytes) : pair.kept.push(bytes)));
    client.once('close', () => {
      server.destroy();
      pairs.delete(pair);
    });
    // The end of the server's side does not pass a frozen proxy either.
    server.once('close', () => pair.kept ?? client.destroy());
  });
  const listen = (port: number) =>
    new Promise<void>((resolve) => {
      listener.listen(port, '127.0.0.1', resolve);
    });
  await listen(0);
  const { port } = listener.address() as AddressInfo;
  const dripping = new Set<object>();
  const freezeOpen = (how: Freeze) => {
    for (const pair of pairs) {
      pair.kept ??= [];
      if (how === 'dripping') dripping.add(pair);
    }
  };
  const cut = () => {
    for (const client of clients) client.destroy();
  };
  const shut = async () => {
    cut();
    await new Promise<void>((resolve) => {
      listener.close(() => resolve());
    });
  };
  return {
    port,
    get connections() {
      return connections;
    },
    freezeOpen,
    freezeAll() {
      isFrozen = true;
      freezeOpen('silent');
    },
    thaw() {
      isFrozen = false;
    },
    drip() {
      for (const pair of pairs) {
        if (pair.kept === undefined || !dripping.has(pair)) continue;
        const bytes = Buffer.concat(pair.kept);
        pair.kept = [bytes.subarray(1)];
        if (bytes.length > 0 && !pair.client.destroyed) pair.client.write(bytes.subarray(0, 1));
      }
    },
    cut,
    shut,
    open: () => listen(port),
    stop: shut,
  };
}
