import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

/** What a Service is to its callers: one port, behind it whoever serves at the moment. */
export interface Forwarder {
  readonly port: number;
  stop(): Promise<void>;
}

/** @param targets the ports on loopback to try, in this order; asked for at each new connection */
export async function startForwarder(targets: () => readonly number[]): Promise<Forwarder> {
  const sockets = new Set<Socket>();
  const keep = (socket: Socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined).once('close', () => sockets.delete(socket));
  };
  const lead = (socket: Socket, [port, ...others]: readonly number[]) => {
    if (port === undefined || socket.destroyed) {
      socket.destroy();
      return;
    }
    const behind = connect(port, '127.0.0.1');
    keep(behind);
    const refused = () => lead(socket, others);
    behind.once('error', refused);
    behind.once('connect', () => {
      behind.off('error', refused);
      behind.once('close', () => socket.destroy());
      socket.once('close', () => behind.destroy());
      socket.pipe(behind).pipe(socket);
    });
  };
  const server = createServer((socket) => {
    keep(socket);
    lead(socket, targets());
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  return {
    port: (server.address() as AddressInfo).port,
    async stop() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
