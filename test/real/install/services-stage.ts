import { writeFileSync } from 'node:fs';
import { connect, createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { stringify } from 'yaml';

/**
 * The API server's connection to Services: for any address, it requests a connection here (HTTP CONNECT) and gets one
 * port of loopback. So webhooks are called as the shipped configurations define, by their Service and its certificate.
 */
export async function createWayToTheCluster(directory: string) {
  const udsName = join(directory, 'egress.sock');
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined).once('close', () => sockets.delete(socket));
    // The API server sends nothing more before it gets the answer.
    socket.once('data', () => {
      const behind = connect(way.port, '127.0.0.1', () => {
        socket.write('HTTP/1.1 200 Connection established\r\n\r\n');
        socket.pipe(behind).pipe(socket);
      });
      sockets.add(behind);
      behind.on('error', () => socket.destroy()).once('close', () => sockets.delete(behind));
      socket.once('close', () => behind.destroy());
    });
  });
  await new Promise<void>((resolve) => {
    server.listen(udsName, resolve);
  });
  const connection = { proxyProtocol: 'HTTPConnect', transport: { uds: { udsName } } };
  const configuration = {
    apiVersion: 'apiserver.k8s.io/v1beta1',
    kind: 'EgressSelectorConfiguration',
    egressSelections: [{ name: 'cluster', connection }],
  };
  const file = join(directory, 'egress.yaml');
  writeFileSync(file, stringify(configuration));
  const way = {
    apiServerArgs: ['--egress-selector-config-file', file],
    /** The target from now on. */
    port: 0,
    async stop() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return way;
}
