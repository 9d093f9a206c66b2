import type { IncomingMessage } from 'node:http';
import { connect } from 'node:net';
import type { Duplex } from 'node:stream';
import { type WebSocket, WebSocketServer } from 'ws';

/** Source: k8s.io/kubelet/pkg/cri/streaming/portforward/websocket.go */
const PROTOCOL = 'v4.channel.k8s.io';
const [DATA, ERROR] = [0, 1];

const upgrades = new WebSocketServer({ noServer: true, handleProtocols: () => PROTOCOL });

/** Each channel begins with the port in two bytes, little endian. @param local port here; undefined: nothing listens */
export function forwardPort(request: IncomingMessage, socket: Duplex, port: number, local: number | undefined): void {
  const offered = (request.headers['sec-websocket-protocol'] ?? '').split(',').map((name) => name.trim());
  if (!offered.includes(PROTOCOL)) refuseUpgrade(socket, 400, `only ${PROTOCOL} is supported`);
  else if (!(port > 0 && port < 65_536)) refuseUpgrade(socket, 400, 'exactly one valid port is required');
  else upgrades.handleUpgrade(request, socket, Buffer.alloc(0), (webSocket) => connectPort(webSocket, port, local));
}

export function refuseUpgrade(socket: Duplex, status: number, text: string): void {
  socket.end(`HTTP/1.1 ${status} \r\ncontent-length: ${Buffer.byteLength(text)}\r\nconnection: close\r\n\r\n${text}`);
}

function connectPort(webSocket: WebSocket, port: number, local: number | undefined): void {
  const send = (channel: number, bytes: Buffer) => webSocket.send(Buffer.concat([Buffer.of(channel), bytes]));
  const portBytes = Buffer.alloc(2);
  portBytes.writeUInt16LE(port);
  for (const channel of [DATA, ERROR]) send(channel, portBytes);
  const fail = () => {
    const dial = `dial tcp4 127.0.0.1:${port}: connection refused`;
    send(ERROR, Buffer.from(`failed to execute portforward in network namespace: ${dial}\n`));
    webSocket.close();
  };
  if (local === undefined) {
    fail();
    return;
  }
  const target = connect(local, '127.0.0.1');
  target.on('error', fail).on('data', (bytes) => send(DATA, bytes));
  target.once('end', () => webSocket.close());
  webSocket.on('message', (message: Buffer) => {
    if (message[0] === DATA) target.write(message.subarray(1));
  });
  webSocket.once('close', () => target.destroy()).on('error', () => undefined);
}
