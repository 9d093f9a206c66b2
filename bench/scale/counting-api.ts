import type { IncomingMessage } from 'node:http';
import { Agent, createServer, request as tlsRequest } from 'node:https';
import type { TLSSocket } from 'node:tls';
import { createCertificateAuthority } from '../../sandbox/certificates.ts';

/** Network traffic since the last `take`. */
export interface Traffic {
  /** Calls by verb and resource, as `watch leases`. */
  readonly requests: ReadonlyMap<string, number>;
  /** Bytes of responses by verb and resource, as sent (compressed if they are). */
  readonly bytes: ReadonlyMap<string, number>;
}

/** A proxy of an API server that counts every call and its response. */
export interface CountingApi {
  readonly url: string;
  readonly ca: string;
  /** Returns the counts since the last call. */
  take(): Traffic;
  stop(): Promise<void>;
}

export async function startCountingApi(api: { readonly url: string; readonly ca: string }): Promise<CountingApi> {
  const authority = createCertificateAuthority('counting-api');
  const target = new URL(api.url);
  const agent = new Agent({ keepAlive: true, ca: api.ca });
  let requests = new Map<string, number>();
  let bytes = new Map<string, number>();
  const server = createServer(authority.issue(['127.0.0.1']), (incoming, outgoing) => {
    const { method = 'GET', url = '/', headers } = incoming;
    const kind = kindOf(method, url);
    requests.set(kind, (requests.get(kind) ?? 0) + 1);
    const options = { agent, host: target.hostname, port: target.port, method, path: url, headers };
    const forwarded = tlsRequest(options, (answer: IncomingMessage) => {
      outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
      outgoing.flushHeaders();
      answer.on('data', (chunk: Buffer) => {
        bytes.set(kind, (bytes.get(kind) ?? 0) + chunk.length);
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
    take() {
      const taken = { requests, bytes };
      requests = new Map();
      bytes = new Map();
      return taken;
    },
    async stop() {
      agent.destroy();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** `/apis/plumbline.dev/v1alpha1/nodetopologies/n1/status` by PATCH: `patch nodetopologies`. */
export function kindOf(method: string, url: string): string {
  const { pathname, searchParams } = new URL(url, 'https://api');
  const parts = pathname.split('/').slice(pathname.startsWith('/apis/') ? 4 : 3);
  const [resource = 'api', name] = parts[0] === 'namespaces' && parts.length > 2 ? parts.slice(2) : parts;
  if (method !== 'GET') return `${method === 'POST' ? 'create' : method.toLowerCase()} ${resource}`;
  const verb = searchParams.get('watch') === 'true' ? 'watch' : name === undefined ? 'list' : 'get';
  return `${verb} ${resource}`;
}

/** The sum over all kinds, or over those with a prefix. */
export function sumOf(counts: ReadonlyMap<string, number>, beginning = ''): number {
  return [...counts].reduce((sum, [kind, count]) => (kind.startsWith(beginning) ? sum + count : sum), 0);
}
