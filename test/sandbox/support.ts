import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createSecureServer, request } from 'node:https';
import type { AddressInfo } from 'node:net';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import { ApiServer } from '../../sandbox/api-server/server.ts';
import { createLocalClient, type LocalClient } from '../../sandbox/clients/local-client.ts';
import type { JsonRecord, KubeObject } from '../../sandbox/objects.ts';

export const TOKEN = 'admin-token';
/** Two NUMA nodes of four cores of two threads. */
export const TWO_NODES = {
  cells: [
    { id: 0, cpus: '0-3,8-11' },
    { id: 1, cpus: '4-7,12-15' },
  ],
  cores: Array.from({ length: 8 }, (_, core) => `${core},${core + 8}`),
};
export const PODS = '/api/v1/namespaces/default/pods';
export const MAPS = '/api/v1/namespaces/default/configmaps';
export const LEASES = '/apis/coordination.k8s.io/v1/namespaces/default/leases';
export const TOPOLOGIES = '/apis/plumbline.dev/v1alpha1/nodetopologies';
export const MERGE = 'application/merge-patch+json';

interface Reply {
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

export function clientOf(server: ApiServer): Client {
  return (method, path, body, { type = 'application/json', accept = 'application/json', token = TOKEN } = {}) =>
    new Promise((resolve, reject) => {
      const sent = typeof body === 'string' ? body : JSON.stringify(body);
      const headers = {
        accept,
        authorization: `Bearer ${token}`,
        // Node sends the body of a DELETE correctly only if its length is given.
        ...(sent !== undefined && { 'content-type': type, 'content-length': Buffer.byteLength(sent) }),
      };
      const outgoing = request(`${server.url}${path}`, { method, ca: server.ca, agent: false, headers }, (response) => {
        text(response).then((answer) => {
          const decoded = answer === '' ? {} : JSON.parse(answer);
          resolve({ status: response.statusCode ?? 0, headers: response.headers, body: decoded });
        }, reject);
      });
      outgoing.on('error', reject).end(sent);
    });
}

/** A server that lives as long as the suite, and its clients. */
export function useApiServer(options: ConstructorParameters<typeof ApiServer>[0] = {}) {
  let server: ApiServer;
  let client: LocalClient;
  before(async () => {
    const user = { username: 'tester', groups: ['system:authenticated'], extra: { 'example.dev/x': ['y'] } };
    server = new ApiServer({ tokens: { [TOKEN]: user }, ...options });
    client = createLocalClient(server, { username: 'tester', groups: [] });
    await server.start();
  });
  after(() => server?.stop());
  const call: Client = (...sent) => clientOf(server)(...sent);
  return {
    call,
    get server() {
      return server;
    },
    /** In the process of the server. */
    get client() {
      return client;
    },
    exists: async (path: string) => (await call('GET', path)).status === 200,
  };
}

export interface Watched {
  type: string;
  object: KubeObject & { code?: number; reason?: string };
}

/** Opens a watch and collects its events until it ends or is closed. */
export function watch(server: ApiServer, path: string) {
  const events: Watched[] = [];
  const headers = { authorization: `Bearer ${TOKEN}` };
  const outgoing = request(`${server.url}${path}`, { ca: server.ca, agent: false, headers });
  const closed = new Promise<void>((resolve) => {
    outgoing.on('error', () => resolve());
    outgoing.on('response', (response) => {
      const lines = createInterface({ input: response }).on('line', (line) => events.push(JSON.parse(line)));
      lines.on('error', () => undefined);
      response.on('close', resolve);
    });
  });
  outgoing.end();
  return { events, closed, close: () => outgoing.destroy() };
}

export interface Listener {
  readonly port: number;
  close(): Promise<void>;
}

/** A server that answers JSON with JSON; a number is a status, a text is sent as it is. @param tls else without TLS */
export async function answering(
  answer: (call: { readonly path: string; readonly body: unknown }) => unknown,
  tls?: { readonly cert: string; readonly key: string },
): Promise<Listener> {
  const handle = async (incoming: IncomingMessage, response: ServerResponse) => {
    const body: unknown = JSON.parse(await text(incoming));
    const reply = await answer({ path: incoming.url ?? '', body });
    if (typeof reply === 'number') response.statusCode = reply;
    response.end(typeof reply === 'string' ? reply : JSON.stringify(reply));
  };
  const listener = (incoming: IncomingMessage, response: ServerResponse) => void handle(incoming, response);
  const server = tls ? createSecureServer({ ...tls }, listener) : createServer(listener);
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

export const definitionOf = (name: string): KubeObject => ({
  apiVersion: 'k8s.cni.cncf.io/v1',
  kind: 'NetworkAttachmentDefinition',
  metadata: { name, namespace: 'default' },
});
