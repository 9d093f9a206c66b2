import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type RequestListener,
  type ServerResponse,
} from 'node:http';
import { createServer as createSecureServer, request } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { ApiServer } from '../../sandbox/api-server/server.ts';
import type { CertificateAuthority } from '../../sandbox/certificates.ts';
import type { JsonRecord, KubeObject } from '../../sandbox/objects.ts';

type ApiServerOptions = ConstructorParameters<typeof ApiServer>[0];

export const TOKEN = 'admin-token';
export const PODS = '/api/v1/namespaces/default/pods';
export const MAPS = '/api/v1/namespaces/default/configmaps';

export interface Reply {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: JsonRecord & { message?: string; reason?: string; metadata: JsonRecord };
}

export type Client = (
  method: string,
  path: string,
  body?: unknown,
  options?: { type?: string; accept?: string; token?: string },
) => Promise<Reply>;

/** A running API server for one suite; faults are thrown at the end. */
export async function startApiServer(options: ApiServerOptions = {}): Promise<{ server: ApiServer; call: Client }> {
  const server = new ApiServer({
    tokens: { [TOKEN]: { username: 'tester', groups: ['system:authenticated'], extra: { 'example.dev/x': ['y'] } } },
    ...options,
  });
  await server.start();
  return { server, call: clientOf(server) };
}

export function clientOf(server: ApiServer): Client {
  return (method, path, body, { type = 'application/json', accept = 'application/json', token = TOKEN } = {}) =>
    new Promise((resolve, reject) => {
      const outgoing = request(
        `${server.url}${path}`,
        {
          method,
          ca: server.ca,
          agent: false,
          headers: {
            // Node sends the body of a DELETE correctly only if its length is given.
            ...(body !== undefined && { 'content-length': Buffer.byteLength(textOf(body)) }),
            accept,
            ...(token && { authorization: `Bearer ${token}` }),
            ...(body !== undefined && { 'content-type': type }),
          },
        },
        (response) => {
          text(response).then((sent) => {
            const decoded = sent === '' ? {} : JSON.parse(sent);
            resolve({ status: response.statusCode ?? 0, headers: response.headers, body: decoded });
          }, reject);
        },
      );
      outgoing.on('error', reject);
      outgoing.end(body === undefined ? undefined : textOf(body));
    });
}

const textOf = (body: unknown) => (typeof body === 'string' ? body : JSON.stringify(body));

/** A server that lives as long as the suite. */
export function useApiServer(options: ApiServerOptions = {}) {
  let running: { server: ApiServer; call: Client } | undefined;
  before(async () => {
    running = await startApiServer(options);
  });
  after(() => running?.server.stop());
  const call: Client = (...request) => running!.call(...request);
  return {
    call,
    get server() {
      return running!.server;
    },
  };
}

export interface Watched {
  type: string;
  object: KubeObject & { code?: number; reason?: string };
}

/** Opens a watch and collects its events until it ends or is closed. */
export function watch(server: ApiServer, path: string) {
  const events: Watched[] = [];
  let ended = false;
  const outgoing = request(`${server.url}${path}`, {
    ca: server.ca,
    agent: false,
    headers: { authorization: `Bearer ${TOKEN}` },
  });
  const closed = new Promise<void>((resolve) => {
    outgoing.on('error', () => resolve());
    outgoing.on('response', (response) => {
      let rest = '';
      response.setEncoding('utf8').on('data', (chunk: string) => {
        const lines = (rest + chunk).split('\n');
        rest = lines.pop() ?? '';
        for (const line of lines) events.push(JSON.parse(line));
      });
      response.on('close', resolve);
    });
  }).then(() => {
    ended = true;
  });
  outgoing.end();
  return { events, closed, hasEnded: () => ended, close: () => outgoing.destroy() };
}

export interface Listener {
  readonly port: number;
  close(): Promise<void>;
}

/** An HTTP server, or an HTTPS server with a certificate of the authority for these names. */
export async function listen(
  handler: RequestListener,
  tls?: { authority: CertificateAuthority; names: string[] },
): Promise<Listener> {
  const server = tls ? createSecureServer({ ...tls.authority.issue(tls.names) }, handler) : createServer(handler);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    async close() {
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  };
}

/** A server that answers JSON with JSON; a number is a status, a text is sent as it is. */
export function answering(
  answer: (call: { readonly path: string; readonly body: unknown }) => unknown,
  tls?: Parameters<typeof listen>[1],
): Promise<Listener> {
  const handle = async (request: IncomingMessage, response: ServerResponse) => {
    const body: unknown = JSON.parse(await text(request));
    const reply = await answer({ path: request.url ?? '', body });
    if (typeof reply === 'number') response.statusCode = reply;
    response.end(typeof reply === 'string' ? reply : JSON.stringify(reply));
  };
  return listen((request, response) => void handle(request, response), tls);
}

export async function temporaryDirectory(): Promise<{ path: string; remove: () => Promise<void> }> {
  const path = await mkdtemp(join(tmpdir(), 'plb-'));
  return { path, remove: () => rm(path, { recursive: true, force: true }) };
}

export const podOf = (name: string, resources: JsonRecord = {}, extra: JsonRecord = {}): KubeObject => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name, namespace: 'default' },
  spec: { containers: [{ name: 'main', image: 'none', resources }], ...extra },
});

export const vmOf = (cpu: object): KubeObject => ({
  apiVersion: 'kubevirt.io/v1',
  kind: 'VirtualMachine',
  metadata: { name: 'router', namespace: 'default' },
  spec: { runStrategy: 'Halted', template: { spec: { domain: { cpu, devices: {} } } } } as JsonRecord,
});
