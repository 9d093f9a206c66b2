import { once, setMaxListeners } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import { createCertificateAuthority } from '../certificates.ts';
import { isRecord, type JsonRecord, type KubePod } from '../objects.ts';
import { type Admission, createAdmission } from './admission.ts';
import { NAMESPACES, PODS } from './built-in-types.ts';
import { collectGarbage } from './deletion.ts';
import { ApiError, internal, noSuchPath } from './errors.ts';
import { handleResource } from './handlers.ts';
import { createOpenApi } from './openapi.ts';
import { forwardPort, refuseUpgrade } from './port-forward.ts';
import { timestamp } from './preparation.ts';
import { createObjectRegistry } from './registry.ts';
import { type HandlerDeps, readBody, sendJson, type User } from './requests.ts';
import { discover, findRoute } from './routes.ts';
import type { Components } from './schema-check.ts';
import { createStore } from './store.ts';
import { createWebhookClient, type ServiceResolver } from './webhook-client.ts';

export interface ApiServerOptions {
  /** The user of each bearer token. More can be added while the server runs. */
  readonly tokens?: Readonly<Record<string, User>>;
  /** Finds the address of a webhook's Service. Default: no Service has one. */
  readonly resolveService?: ServiceResolver;
  /** The port on this machine for a port of a pod. Default: no port of a pod has a listener. */
  readonly localPort?: (pod: KubePod, port: number) => number | undefined;
  /** The response of a kubelet's /configz; undefined: there is no such kubelet. Default: there is none. */
  readonly configz?: (node: string) => JsonRecord | undefined;
  readonly port?: number;
  /** Number of changes that a watch may be behind before it gets 410. Default 5,000. */
  readonly history?: number;
  /** Seconds between watch bookmarks. Default 60, as in the API server; minimum above 0. */
  readonly bookmarkSeconds?: number;
  /** Schemas for OpenAPI clients and for the check of unknown fields. Default: none, and any field is accepted. */
  readonly components?: Components;
  readonly onFault?: (error: unknown) => void;
}

export type ApiServer = ReturnType<typeof createApiServer>;

const NAMES = ['kubernetes', 'kubernetes.default.svc', 'localhost', '127.0.0.1'];
const FIRST_NAMESPACES = ['default', 'kube-system', 'kube-public', 'kube-node-lease'];
const ACCESS_REVIEWS = '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews';
const CONFIGZ = /^\/api\/v1\/nodes\/([^/]+)\/proxy\/configz$/;
const BEARER = /^Bearer (.+)$/i;

/** An API server in memory on loopback HTTPS. It authenticates every caller and authorizes everything. */
export function createApiServer(options: ApiServerOptions = {}) {
  const { onFault = () => {} } = options;
  const store = createStore(options.history);
  const webhooks = createWebhookClient(options.resolveService ?? (() => undefined));
  const admission: Admission = createAdmission(store, webhooks);
  const openApi = createOpenApi(options.components ?? {});
  const registry = createObjectRegistry({ store, admission, openApi });
  const tokens = new Map(Object.entries(options.tokens ?? {}));
  const authority = createCertificateAuthority('plumbline-sandbox-ca');
  const serving = authority.issue(NAMES);
  let stopping = new AbortController();
  let url = '';

  const authenticate = ({ headers }: IncomingMessage): User => {
    const user = tokens.get(BEARER.exec(headers.authorization ?? '')?.[1] ?? '');
    if (!user) throw new ApiError(401, 'Unauthorized', 'Unauthorized');
    return user;
  };

  const handle = async (request: IncomingMessage, response: ServerResponse) => {
    const { pathname, searchParams: query } = new URL(request.url ?? '/', 'https://sandbox');
    if (pathname === '/healthz' || pathname === '/livez' || pathname === '/readyz') {
      response.end('ok');
      return;
    }
    const user = authenticate(request);
    if (pathname === ACCESS_REVIEWS && request.method === 'POST') {
      const review = await readBody(request);
      return sendJson(response, 201, { ...(isRecord(review) && review), status: { allowed: true } });
    }
    const configz = options.configz?.(CONFIGZ.exec(pathname)?.[1] ?? '');
    if (configz) return sendJson(response, 200, configz);
    const discovered =
      request.method === 'GET'
        ? (discover(pathname, url.slice('https://'.length)) ?? openApi.document(pathname))
        : undefined;
    if (discovered) return sendJson(response, 200, discovered);
    const route = findRoute(pathname);
    if (!route) throw noSuchPath();
    const deps: HandlerDeps = {
      store,
      registry,
      bookmarkSeconds: options.bookmarkSeconds ?? 60,
      stopping: stopping.signal,
    };
    await handleResource(deps, { request, response, query, route, user });
  };

  const answer = (request: IncomingMessage, response: ServerResponse) => {
    handle(request, response).catch((error: unknown) => {
      if (!(error instanceof ApiError)) onFault(error);
      const refusal = error instanceof ApiError ? error : internal((error as Error).message, { cause: error });
      if (response.headersSent) response.destroy();
      else sendJson(response, refusal.http, refusal.toStatus());
    });
  };

  const upgrade = (request: IncomingMessage, socket: Duplex) => {
    socket.on('error', () => undefined);
    try {
      authenticate(request);
      const { pathname, searchParams } = new URL(request.url ?? '/', 'https://sandbox');
      const route = findRoute(pathname);
      if (route?.name === undefined || route.type !== PODS || route.subresource !== 'portforward') throw noSuchPath();
      const pod = registry.get({ ...route, name: route.name, subresource: '' }) as KubePod;
      const ports = searchParams.getAll('ports');
      const port = ports.length === 1 ? Number(ports[0]) : Number.NaN;
      forwardPort(request, socket, port, options.localPort?.(pod, port));
    } catch (error) {
      const { http, message } = error instanceof ApiError ? error : internal((error as Error).message);
      refuseUpgrade(socket, http, message);
    }
  };

  // Longer than the keep-alive time of any client, so that no request meets a closing socket.
  const createListener = () => createServer({ ...serving, keepAliveTimeout: 100_000 }, answer).on('upgrade', upgrade);
  let server = createListener();
  for (const name of FIRST_NAMESPACES) store.put('/namespaces', name, firstNamespace(name));
  collectGarbage(store, registry, onFault);

  return {
    get url() {
      return url;
    },
    ca: authority.cert,
    store,
    registry,
    addToken: (token: string, user: User) => void tokens.set(token, user),
    async start() {
      stopping = new AbortController();
      setMaxListeners(0, stopping.signal);
      server = createListener();
      const port = url === '' ? (options.port ?? 0) : Number(new URL(url).port);
      server.listen(port, '127.0.0.1');
      await once(server, 'listening');
      url = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
    },
    /** Ends watches and connections. The store stays, and a restart continues with it. */
    async stop() {
      stopping.abort();
      webhooks.close();
      if (!server.listening) return;
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

function firstNamespace(name: string) {
  return {
    apiVersion: 'v1',
    kind: NAMESPACES.kind,
    metadata: {
      name,
      uid: `00000000-0000-4000-8000-${Buffer.from(name).toString('hex').padEnd(12, '0').slice(0, 12)}`,
      creationTimestamp: timestamp(Date.now()),
      labels: { 'kubernetes.io/metadata.name': name },
    },
    status: { phase: 'Active' },
  };
}
