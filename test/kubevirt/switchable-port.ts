import type { AddressInfo } from 'node:net';
import { connect, createServer, type Socket } from 'node:net';

/**
 * A port of loopback that forwards to another one, and can be closed: then nothing listens there, as with a Service
 * without pods.
 */
export type SwitchablePort = Awaited<ReturnType<typeof createSwitchablePort>>;

export async function createSwitchablePort(to: number) {
  const sockets = new Set<Socket>();
  const track = (socket: Socket) => {
    sockets.add(socket);
    return socket.on('error', () => undefined).once('close', () => sockets.delete(socket));
  };
  const server = createServer((socket) => {
    const behind = track(connect(to, '127.0.0.1'));
    track(socket).pipe(behind).pipe(socket);
    behind.once('close', () => socket.destroy());
    socket.once('close', () => behind.destroy());
  });
  const listen = (port: number) => new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
  const close = () =>
    new Promise<void>((resolve) => {
      server.close(() => resolve());
      for (const socket of sockets) socket.destroy();
    });
  await listen(0);
  const { port } = server.address() as AddressInfo;
  return {
    port,
    cut: close,
    restore: () => listen(port),
    stop: () => (server.listening ? close() : Promise.resolve()),
  };
}
