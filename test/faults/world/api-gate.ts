import { readFile, writeFile } from 'node:fs/promises';
import type { ClientRequest, IncomingMessage, ServerResponse } from 'node:http';
import { createServer as createTlsServer, request, Agent as TlsAgent } from 'node:https';
import type { AddressInfo } from 'node:net';
import { parse, stringify } from 'yaml';
import { createCertificateAuthority } from '../../../sandbox/certificates.ts';

export type ApiGate = Awaited<ReturnType<typeof startApiGate>>;

const GONE = {
  kind: 'Status',
  apiVersion: 'v1',
  metadata: {},
  status: 'Failure',
  message: 'too old resource version',
  reason: 'Expired',
  code: 410,
};

interface ApiServer {
  readonly url: string;
  readonly ca: string;
}

/** The daemons' connection to the API server, which counts, and can be broken; the observer bypasses it. */
export async function startApiGate(server: ApiServer) {
  const authority = createCertificateAuthority('faults-api');
  const target = new URL(server.url);
  const agent = new TlsAgent({ keepAlive: true, ca: server.ca });
  const watches = new Set<ServerResponse>();
  let areWatchesExpired = false;
  let expired = 0;
  let port = 0;
  let traffic = { requests: 0, bytes: 0 };

  const pass = (incoming: IncomingMessage, outgoing: ServerResponse) => {
    const { method, url: path = '', headers } = incoming;
    traffic.requests++;
    const forwarded: ClientRequest = request(
      { host: target.hostname, port: target.port, agent, method, path, headers },
      (answer) => {
        outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
        outgoing.flushHeaders();
        answer.on('error', () => outgoing.destroy());
        answer.on('data', (chunk: Buffer) => {
          traffic.bytes += chunk.length;
        });
        answer.pipe(outgoing);
      },
    );
    forwarded.on('error', () => outgoing.destroy());
    outgoing.on('close', () => forwarded.destroy());
    incoming.pipe(forwarded);
  };

  const handle = (incoming: IncomingMessage, outgoing: ServerResponse) => {
    if (isWatch(incoming)) {
      if (areWatchesExpired) {
        expired++;
        outgoing.writeHead(200, { 'content-type': 'application/json' });
        outgoing.end(`${JSON.stringify({ type: 'ERROR', object: GONE })}\n`);
        return;
      }
      watches.add(outgoing);
      outgoing.once('close', () => watches.delete(outgoing));
    }
    pass(incoming, outgoing);
  };

  const create = () => createTlsServer({ ...authority.issue(['127.0.0.1']), keepAliveTimeout: 120_000 }, handle);
  let listener = create();
  const open = async () => {
    listener = create();
    await new Promise<void>((resolve) => {
      listener.listen(port, '127.0.0.1', resolve);
    });
    port = (listener.address() as AddressInfo).port;
  };
  const shut = async () => {
    const closed = new Promise<void>((resolve) => listener.close(() => resolve()));
    listener.closeAllConnections();
    await closed;
  };
  await open();
  return {
    url: `https://127.0.0.1:${port}`,
    ca: authority.cert,
    /** Connections are refused until `open`. */
    shut,
    open,
    cutWatches() {
      for (const watch of watches) watch.destroy();
    },
    expireWatches(areExpired: boolean) {
      areWatchesExpired = areExpired;
    },
    get expired() {
      return expired;
    },
    /** The calls since the last one of `take`, and the bytes of responses as sent (compressed if they are). */
    take() {
      const taken = traffic;
      traffic = { requests: 0, bytes: 0 };
      return taken;
    },
    async stop() {
      await shut();
      agent.destroy();
    },
  };
}

function isWatch({ method, url = '' }: IncomingMessage): boolean {
  return method === 'GET' && /[?&]watch=(true|1)(&|$)/.test(url);
}

interface Kubeconfig {
  readonly clusters: { readonly cluster: { server: string; 'certificate-authority-data': string } }[];
}

export async function serverOf(file: string): Promise<ApiServer> {
  const cluster = (parse(await readFile(file, 'utf8')) as Kubeconfig).clusters[0]?.cluster;
  if (cluster === undefined) throw new Error(`${file} names no cluster`);
  return { url: cluster.server, ca: Buffer.from(cluster['certificate-authority-data'], 'base64').toString() };
}

export async function redirect(file: string, { url, ca }: ApiServer): Promise<string> {
  const content = parse(await readFile(file, 'utf8')) as Kubeconfig;
  for (const { cluster } of content.clusters) {
    cluster.server = url;
    cluster['certificate-authority-data'] = Buffer.from(ca).toString('base64');
  }
  await writeFile(file, stringify(content));
  return file;
}
