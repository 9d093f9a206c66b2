import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

/** A TCP proxy whose open connections can freeze without an error, as behind a failed load balancer. */
export interface FreezingProxy {
  readonly port: number;
  /** Connections so far. */
  readonly connections: number;
  /** Freezes the open connections permanently. New ones work. */
  freezeOpen(): void;
  /** Freezes the open connections permanently, and each new one until `thaw`. */
  freezeAll(): void;
  /** New connections work again. */
  thaw(): void;
  /** Breaks every open connection. */
  cut(): void;
  /** Breaks them and refuses new ones until `open`. */
  shut(): Promise<void>;
  open(): Promise<void>;
  stop(): Promise<void>;
}

export async function startFreezingProxy(targetPort: number): Promise<FreezingProxy> {
  const pairs = new Set<{ client: Socket; server: Socket; isFrozen: boolean }>();
  const clients = new Set<Socket>();
  let connections = 0;
  let isFrozen = false;
  const listener = createServer((client) => {
    connections++;
    clients.add(client);
    client.on('error', () => undefined).once('close', () => clients.delete(client));
    if (isFrozen) return void client.resume();
    const server = connect(targetPort, '127.0.0.1').on('error', () => undefined);
    const pair = { client, server, isFrozen: false };
    pairs.add(pair);
    client.on('data', (bytes) => pair.isFrozen || server.write(bytes));
    server.on('data', (bytes) => pair.isFrozen || client.write(bytes));
    client.once('close', () => {
      server.destroy();
      pairs.delete(pair);
    });
    // The end of the server's side does not pass a frozen proxy either.
    server.once('close', () => pair.isFrozen || client.destroy());
  });
  const listen = (port: number) =>
    new Promise<void>((resolve) => {
      listener.listen(port, '127.0.0.1', resolve);
    });
  await listen(0);
  const { port } = listener.address() as AddressInfo;
  const freezeOpen = () => {
    for (const pair of pairs) pair.isFrozen = true;
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
      freezeOpen();
    },
    thaw() {
      isFrozen = false;
    },
    cut,
    shut,
    open: () => listen(port),
    stop: shut,
  };
}
