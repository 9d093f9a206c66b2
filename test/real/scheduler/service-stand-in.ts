import { connect, createServer, type Server, type Socket } from 'node:net';
import type { KubeClient } from '../../../kube/client.ts';

/** kube-proxy's handling of a Service, on one port of loopback: each new connection goes to the published endpoint. */
export interface ServiceStandIn {
  readonly port: number;
  /** The address and port that are currently published. */
  endpoint(): Promise<{ readonly address: string; readonly port: number } | undefined>;
  stop(): Promise<void>;
}

interface Slice {
  readonly endpoints?: readonly { readonly addresses: readonly string[] }[];
  readonly ports?: readonly { readonly port: number }[];
}

/** The published address is not one of this machine, so only its port is used. */
export async function createServiceStandIn(
  client: KubeClient,
  namespace: string,
  service: string,
): Promise<ServiceStandIn> {
  const path = `/apis/discovery.k8s.io/v1/namespaces/${namespace}/endpointslices/${service}`;
  const endpoint = async () => {
    const slice = (await client.get(path).catch(() => ({}))) as Slice;
    const [address, port] = [slice.endpoints?.[0]?.addresses[0], slice.ports?.[0]?.port];
    return address === undefined || port === undefined ? undefined : { address, port };
  };
  const sockets = new Set<Socket>();
  const server: Server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined).once('close', () => sockets.delete(socket));
    void endpoint().then((found) => {
      if (found === undefined) {
        socket.destroy();
        return;
      }
      const behind = connect(found.port, '127.0.0.1');
      sockets.add(behind);
      behind.on('error', () => undefined).once('close', () => sockets.delete(behind));
      behind.once('close', () => socket.destroy());
      socket.once('close', () => behind.destroy());
      socket.pipe(behind).pipe(socket);
    });
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  const address = server.address();
  return {
    port: typeof address === 'object' && address !== null ? address.port : 0,
    endpoint,
    async stop() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
