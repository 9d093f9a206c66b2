import { connect, type TLSSocket } from 'node:tls';

/** The target of reviews. */
export interface ReviewTarget {
  readonly port: number;
  readonly path: string;
  /** CA certificate, PEM. */
  readonly ca: string;
}

/**
 * A load of reviews over TLS 1.3 on open connections, one review at a time on each. The bytes of a request are created
 * once and responses are only counted, so that the client, which runs on the same machine, costs little compared with
 * the server.
 */
export interface ReviewLoad {
  /** Sends this number of reviews and returns reviews per second. @throws if a response is not 200 or has no patch */
  run(calls: number): Promise<number>;
  close(): void;
}

export async function openReviewLoad(
  { port, path, ca }: ReviewTarget,
  body: Buffer,
  concurrency: number,
): Promise<ReviewLoad> {
  const head = `POST ${path} HTTP/1.1\r\nhost: localhost:${port}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n`;
  const request = Buffer.concat([Buffer.from(head), body]);
  const sockets = await Promise.all(Array.from({ length: concurrency }, () => opened(port, ca)));
  return {
    async run(calls) {
      let left = calls;
      const begun = performance.now();
      await Promise.all(
        sockets.map(async (socket) => {
          while (left-- > 0) await exchange(socket, request);
        }),
      );
      return (calls / (performance.now() - begun)) * 1000;
    },
    close() {
      for (const socket of sockets) socket.destroy();
    },
  };
}

function opened(port: number, ca: string): Promise<TLSSocket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: '127.0.0.1', port, servername: 'localhost', ca, minVersion: 'TLSv1.3' });
    socket.setNoDelay(true);
    socket.once('secureConnect', () => resolve(socket));
    socket.once('error', reject);
  });
}

function exchange(socket: TLSSocket, request: Buffer): Promise<void> {
  return new Promise((resolve, reject) => {
    let received = '';
    const done = (error?: Error) => {
      socket.off('data', onData);
      socket.off('close', onClose);
      if (error === undefined) resolve();
      else reject(error);
    };
    const onClose = () => done(new Error('the connection was closed'));
    const onData = (chunk: Buffer) => {
      received += chunk.toString('latin1');
      const end = received.indexOf('\r\n\r\n');
      if (end < 0) return;
      const length = /\r\ncontent-length: (\d+)/i.exec(received.slice(0, end))?.[1];
      if (length === undefined) done(new Error('an answer without content-length'));
      else if (received.length >= end + 4 + Number(length)) {
        const right = received.startsWith('HTTP/1.1 200') && received.includes('"JSONPatch"', end);
        done(right ? undefined : new Error(`unexpected answer: ${received.slice(0, 2000)}`));
      }
    };
    socket.on('data', onData);
    socket.on('close', onClose);
    socket.write(request);
  });
}
