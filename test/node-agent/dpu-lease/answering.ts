import { rmSync } from 'node:fs';
import { createServer, type Server } from 'node:net';

export interface AnsweringSocket {
  close(): void;
}

/** The socket on which a daemon of Open vSwitch answers, here with empty answers. If `hung`, it never answers. */
export function startAnswering(path: string, { hung = false } = {}): AnsweringSocket {
  rmSync(path, { force: true });
  const server: Server = createServer((socket) => {
    socket.on('error', () => socket.destroy());
    socket.on('data', () => hung || socket.write('{"id":0,"result":{},"error":null}'));
  });
  server.listen(path);
  server.unref();
  return {
    close() {
      server.close();
      rmSync(path, { force: true });
    },
  };
}
