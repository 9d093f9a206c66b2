import { rmSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { join } from 'node:path';

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

/** Both sockets of an Open vSwitch whose ovs-vswitchd has the given pid. */
export function startAnsweringOvs(rundir: string, vswitchd: number): AnsweringSocket {
  const sockets = ['db.sock', `ovs-vswitchd.${vswitchd}.ctl`].map((name) => startAnswering(join(rundir, name)));
  return {
    close() {
      for (const socket of sockets) socket.close();
    },
  };
}
