import type { IncomingMessage, Server } from 'node:http';
import type { Socket } from 'node:net';

/**
 * At the cap a new connection replaces the least active one: silent, then idle, then sending. One that waits for its
 * answer stays; if all do, the new one is closed.
 */
export type ConnectionLimit = ReturnType<typeof limitConnections>;

type State = 'silent' | 'idle' | 'sending' | 'answered';

interface Connection {
  readonly socket: Socket;
  state: State;
}

const EXPENDABLE: readonly State[] = ['silent', 'idle', 'sending'];

const peerOf = ({ remoteAddress, remotePort }: Socket) => `${remoteAddress} ${remotePort}`;

/** Caps the connections of `server` at `most`, from now on. */
export function limitConnections(server: Server, most: number) {
  /** By peer, oldest first: a TLS connection and the TCP connection under it have the same peer. */
  const connections = new Map<string, Connection>();
  let evicted = 0;

  const makeRoom = (): boolean => {
    for (const state of EXPENDABLE) {
      for (const [peer, connection] of connections) {
        if (connection.state !== state) continue;
        connections.delete(peer);
        connection.socket.destroy();
        return true;
      }
    }
    return false;
  };

  server.on('connection', (socket: Socket) => {
    const peer = peerOf(socket);
    // The second event of a peer is the same connection after its TLS handshake.
    if (connections.has(peer)) return;
    if (connections.size >= most) {
      evicted++;
      if (!makeRoom()) return void socket.destroy();
    }
    connections.set(peer, { socket, state: 'silent' });
    socket.once('close', () => {
      if (connections.get(peer)?.socket === socket) connections.delete(peer);
    });
  });

  server.on('request', (request: IncomingMessage, response) => {
    const connection = connections.get(peerOf(request.socket));
    if (connection === undefined) return;
    connection.state = 'sending';
    request.once('end', () => {
      connection.state = 'answered';
    });
    response.once('close', () => {
      connection.state = 'idle';
    });
  });

  return {
    get open() {
      return connections.size;
    },
    /** Connections closed to make room, and new ones refused because there was no room. */
    get evicted() {
      return evicted;
    },
  };
}
