import type { IncomingMessage } from 'node:http';
import { Agent, createServer, request as tlsRequest } from 'node:https';
import type { TLSSocket } from 'node:tls';
import { createCertificateAuthority } from '../../sandbox/certificates.ts';

export type CountingApi = Awaited<ReturnType<typeof startCountingApi>>;

/** A proxy of an API server that counts every call and its response. */
export async function startCountingApi(api: { readonly url: string; readonly ca: string }) {
  const authority = createCertificateAuthority('counting-api');
  const target = new URL(api.url);
  const agent = new Agent({ keepAlive: true, ca: api.ca });
  let requests = 0;
  let bytes = 0;
  const server = createServer(authority.issue(['127.0.0.1']), (incoming, outgoing) => {
    const { method = 'GET', url = '/', headers } = incoming;
    requests++;
    const options = { agent, host: target.hostname, port: target.port, method, path: url, headers };
    const forwarded = tlsRequest(options, (answer: IncomingMessage) => {
      outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
      outgoing.flushHeaders();
      answer.on('data', (chunk: Buffer) => {
        bytes += chunk.length;
        outgoing.write(chunk);
      });
      answer.on('end', () => outgoing.end());
      answer.on('error', () => outgoing.destroy());
    });
    forwarded.on('error', () => outgoing.destroy());
    outgoing.on('close', () => forwarded.destroy());
    incoming.pipe(forwarded);
  });
  server.on('connection', (socket: TLSSocket) => socket.setNoDelay(true));
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  const address = server.address();
  return {
    url: `https://127.0.0.1:${typeof address === 'object' ? address?.port : 0}`,
    ca: authority.cert,
    /** The calls since the last one of `take`, and the bytes of responses as sent (compressed if they are). */
    take() {
      const taken = { requests, bytes };
      requests = 0;
      bytes = 0;
      return taken;
    },
    async stop() {
      agent.destroy();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
