import { writeFileSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { createServer } from 'node:https';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import type { TLSSocket } from 'node:tls';
import { type WebSocket, WebSocketServer } from 'ws';
import type { CertificateAuthority } from '../../../sandbox/certificates.ts';
import { listenOnLoopback } from '../../support/processes.ts';

export type KubeletStandIn = Awaited<ReturnType<typeof createKubeletStandIn>>;

export function kubeletFlags(directory: string, authority: CertificateAuthority): string[] {
  const { cert, key } = authority.issue(['kube-apiserver']);
  const write = (name: string, text: string) => {
    writeFileSync(join(directory, name), text, { mode: 0o600 });
    return join(directory, name);
  };
  return [
    ...['--kubelet-client-certificate', write('client.crt', cert), '--kubelet-client-key', write('client.key', key)],
    ...['--kubelet-certificate-authority', write('ca.crt', authority.cert)],
    ...['--kubelet-preferred-address-types', 'InternalIP'],
  ];
}

const PROTOCOL = 'v4.channel.k8s.io';
const [DATA, ERROR] = [0, 1];

/**
 * The kubelet's `/portForward/{namespace}/{pod}` over WebSocket, as the kubelet and containerd serve it: the caller
 * needs a certificate of the cluster's authority, a missing pod gives 404, the subprotocol is v4.channel.k8s.io, each
 * channel begins with the port in two bytes (little endian), and a port without a listener gives an error on channel 1.
 * Source: k8s.io/kubelet/pkg/cri/streaming/portforward/websocket.go
 */
export async function createKubeletStandIn(authority: CertificateAuthority) {
  const { cert, key } = authority.issue(['127.0.0.1']);
  /** The requested paths, with the subprotocols that the caller offered. */
  const asked: { url: string; protocols: string }[] = [];
  /** Ports that are forwarded: `namespace/name` → port in the pod → port on this machine. */
  const pods = new Map<string, ReadonlyMap<number, number>>();
  const sockets = new Set<Socket>();
  const server = createServer({ cert, key, ca: authority.cert, requestCert: true, rejectUnauthorized: false });
  server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined).once('close', () => sockets.delete(socket));
  });
  const upgrades = new WebSocketServer({ noServer: true, handleProtocols: () => PROTOCOL });
  server.on('upgrade', (request: IncomingMessage, socket: TLSSocket, head: Buffer) => {
    socket.on('error', () => undefined);
    const protocols = request.headers['sec-websocket-protocol'] ?? '';
    asked.push({ url: request.url ?? '', protocols });
    const url = new URL(request.url ?? '', 'https://kubelet');
    const [, verb, namespace, name] = url.pathname.split('/');
    const ports = pods.get(`${namespace}/${name}`);
    if (!socket.authorized) return refuse(socket, 401, 'Unauthorized');
    if (verb !== 'portForward' || ports === undefined) return refuse(socket, 404, `pod does not exist`);
    const offered = protocols.split(',').map((one) => one.trim());
    // kube-apiserver turns `ports` into `port`.
    const wanted = url.searchParams.getAll('port');
    const port = Number(wanted[0]);
    if (!offered.includes(PROTOCOL)) return refuse(socket, 403, 'unable to negotiate a subprotocol');
    if (wanted.length !== 1 || !(port > 0 && port < 65_536)) return refuse(socket, 400, 'invalid port');
    upgrades.handleUpgrade(request, socket, head, (connection) => serve(connection, port, ports.get(port)));
  });
  return {
    port: await listenOnLoopback(server),
    asked,
    pods,
    async stop() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function refuse(socket: Socket, status: number, text: string): void {
  socket.end(`HTTP/1.1 ${status} \r\ncontent-length: ${text.length}\r\nconnection: close\r\n\r\n${text}`);
}

function serve(connection: WebSocket, port: number, local: number | undefined): void {
  const number = Buffer.alloc(2);
  number.writeUInt16LE(port);
  const behind = local === undefined ? undefined : connect(local, '127.0.0.1');
  connection.on('message', (message: Buffer) => {
    if (message[0] === DATA) behind?.write(message.subarray(1));
  });
  for (const channel of [DATA, ERROR]) connection.send(Buffer.concat([Buffer.of(channel), number]));
  const failed = () => {
    const text = `failed to execute portforward in network namespace: dial tcp4 127.0.0.1:${port}: connection refused\n`;
    connection.send(Buffer.concat([Buffer.of(ERROR), Buffer.from(text)]));
    connection.close();
  };
  if (behind === undefined) {
    failed();
    return;
  }
  behind.on('error', failed).on('data', (bytes) => connection.send(Buffer.concat([Buffer.of(DATA), bytes])));
  behind.once('end', () => connection.close());
  connection.once('close', () => behind.destroy());
}
