import { createServer, type Socket } from 'node:net';
import { createJsonStream } from '../../../node-agent/open-vswitch/ovsdb/json-stream.ts';

export interface OvsdbMessage {
  readonly id?: unknown;
  readonly method?: string;
  readonly params?: unknown;
}

/** A server of OVSDB that keeps all received messages. */
export async function serveOvsdb(path: string, answer: (send: (text: string) => void, message: OvsdbMessage) => void) {
  const sockets: Socket[] = [];
  const received: OvsdbMessage[] = [];
  const server = createServer((socket) => {
    sockets.push(socket);
    const read = createJsonStream();
    socket.on('error', () => {});
    socket.on('data', (chunk) => {
      for (const message of read(chunk)) {
        received.push(message as OvsdbMessage);
        answer((text) => void socket.write(text), message as OvsdbMessage);
      }
    });
  });
  await new Promise<void>((resolve) => server.listen(path, resolve));
  const close = () => {
    for (const socket of sockets) socket.destroy();
    server.close();
  };
  return { sockets, received, close };
}
