import type { IncomingMessage } from 'node:http';
import { createServer, request as tlsRequest } from 'node:https';
import { setTimeout as delay } from 'node:timers/promises';
import { createCertificateAuthority } from '../../../sandbox/certificates.ts';
import type { ControlPlane } from '../control-plane.ts';

/** A proxy to the API server that delays watches of some resources. */
export interface LaggingApi {
  readonly url: string;
  readonly ca: string;
  stop(): Promise<void>;
}

/** @param lags whether the answer for a path is delayed, including single reads */
export async function startLaggingApi(
  plane: ControlPlane,
  seconds: number,
  lags: (path: string) => boolean,
): Promise<LaggingApi> {
  const authority = createCertificateAuthority('lagging-api');
  const target = new URL(plane.url);
  const server = createServer(authority.issue(['127.0.0.1']), (incoming, outgoing) => {
    const { method, url: path = '', headers } = incoming;
    const options = { host: target.hostname, port: target.port, ca: plane.ca, method, path, headers };
    const forwarded = tlsRequest(options, (answer: IncomingMessage) => {
      outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
      const late = lags(path);
      let last = Promise.resolve();
      // Chunks keep their order: each waits for the previous one and for its own time.
      answer.on('data', (chunk: Buffer) => {
        const due = late ? delay(seconds * 1000) : Promise.resolve();
        last = Promise.all([last, due]).then(() => void outgoing.write(chunk));
      });
      answer.on('end', () => void last.then(() => outgoing.end()));
      answer.on('error', () => outgoing.destroy());
    });
    forwarded.on('error', () => outgoing.destroy());
    outgoing.on('close', () => forwarded.destroy());
    incoming.pipe(forwarded);
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  const address = server.address();
  return {
    url: `https://127.0.0.1:${typeof address === 'object' ? address?.port : 0}`,
    ca: authority.cert,
    async stop() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
