import { once, setMaxListeners } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import { formatTime } from '../../model/lease/timing.ts';
import { createCertificateAuthority } from '../certificates.ts';
import type { JsonRecord, KubePod } from '../objects.ts';
import { createAdmission } from './admission.ts';
import { NAMESPACES, PODS } from './built-in-types.ts';
import type { User } from './call.ts';
import { collectGarbage, followDefinitions } from './controllers.ts';
import { isServed, servedTypes } from './definitions.ts';
import { ApiError, internal, noSuchPath } from './errors.ts';
import { handleResource } from './handlers.ts';
import { createOpenApi, type OpenApi } from './openapi.ts';
import { forwardPort, refuseUpgrade } from './port-forward.ts';
import { Registry } from './registry.ts';
import { type ContainerProcesses, sendJson } from './requests.ts';
import { discover, findRoute } from './routes.ts';
import type { Components } from './schema-check.ts';
import { Store } from './store.ts';
import { createWebhookClient, type ServiceResolver, type WebhookClient } from './webhook-client.ts';

interface ApiServerOptions {
  /** The user of each bearer token. More can be added while the server runs. */
  readonly tokens?: Readonly<Record<string, User>>;
  /** Finds the address of a webhook's Service. Default: no Service has one. */
  readonly resolveService?: ServiceResolver;
  /** Default: no port of a pod has a listener, and no container a log. */
  readonly processes?: ContainerProcesses | undefined;
  /** The response of a kubelet's /configz; undefined: there is no such kubelet. Default: there is none. */
  readonly configz?: (node: string) => JsonRecord | undefined;
  readonly port?: number | undefined;
  /** Number of changes that a watch may be behind before it gets 410. Default 5,000. */
  readonly history?: number;
  /** Seconds between watch bookmarks. Default 60, as in the API server; minimum above 0. */
  readonly bookmarkSeconds?: number;
  /** Schemas for OpenAPI clients and for the check of unknown fields. Default: none, and any field is accepted. */
  readonly components?: Components | undefined;
  readonly onFault?: (error: unknown) => void;
}

const NAMES = ['kubernetes', 'kubernetes.default.svc', 'localhost', '127.0.0.1'];
const FIRST_NAMESPACES = ['default', 'kube-system', 'kube-public', 'kube-node-lease'];
const ACCESS_REVIEW = { apiVersion: 'authorization.k8s.io/v1', kind: 'SelfSubjectAccessReview' };
const ACCESS_REVIEWS = '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews';
const CONFIGZ = /^\/api\/v1\/nodes\/([^/]+)\/proxy\/configz$/;
const BEARER = /^Bearer (.+)$/i;

const apiError = (error: unknown) =>
  error instanceof ApiError ? error : internal((error as Error).message, { cause: error });

/**
 * An API server in memory on loopback HTTPS. It authenticates every caller and authorizes everything. Of what it
 * remembers, tokens and objects are the cluster's and end with the process; the URL is that of the last start, and
 * connections end at `stop`. A later start continues with the same objects at the same URL.
 */
export class ApiServer {
  readonly ca: string;
  readonly store: Store;
  readonly registry: Registry;
  readonly #options: ApiServerOptions;
  readonly #webhooks: WebhookClient;
  readonly #openApi: OpenApi;
  readonly #tokens: Map<string, User>;
  readonly #serving: { readonly cert: string; readonly key: string };
  #stopping = new AbortController();
  #server: Server | undefined;
  #url = '';

  constructor(options: ApiServerOptions = {}) {
    this.#options = options;
    this.store = new Store(options.history);
    this.#webhooks = createWebhookClient(options.resolveService ?? (() => undefined));
    this.#openApi = createOpenApi(options.components ?? {});
    this.registry = new Registry(this.store, createAdmission(this.store, this.#webhooks), this.#openApi);
    this.#tokens = new Map(Object.entries(options.tokens ?? {}));
    const authority = createCertificateAuthority('plumbline-sandbox-ca');
    this.ca = authority.cert;
    this.#serving = authority.issue(NAMES);
    for (const name of FIRST_NAMESPACES) this.store.put('/namespaces', name, firstNamespace(name));
    followDefinitions(this.store);
    collectGarbage(this.store, this.registry, (error) => options.onFault?.(error));
  }

  get url(): string {
    return this.#url;
  }

  addToken(token: string, user: User): void {
    this.#tokens.set(token, user);
  }

  async start(): Promise<void> {
    this.#stopping = new AbortController();
    setMaxListeners(0, this.#stopping.signal);
    // Longer than the keep-alive time of any client, so that no request meets a closing socket.
    const server = createServer({ ...this.#serving, keepAliveTimeout: 100_000 }, (request, response) => {
      this.#handle(request, response).catch((error: unknown) => this.#refuse(response, error));
    });
    server.on('upgrade', (request, socket) => this.#upgrade(request, socket));
    this.#server = server;
    const port = this.#url === '' ? (this.#options.port ?? 0) : Number(new URL(this.#url).port);
    server.listen(port, '127.0.0.1');
    await once(server, 'listening');
    this.#url = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
  }

  /** Ends watches and connections. The store stays, and a restart continues with it. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#webhooks.close();
    if (!this.#server?.listening) return;
    const closed = once(this.#server, 'close');
    this.#server.close();
    this.#server.closeAllConnections();
    await closed;
  }

  #authenticate({ headers }: IncomingMessage): User {
    const user = this.#tokens.get(BEARER.exec(headers.authorization ?? '')?.[1] ?? '');
    if (!user) throw new ApiError(401, 'Unauthorized', 'Unauthorized');
    return user;
  }

  async #handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { pathname, searchParams: query } = new URL(request.url ?? '/', 'https://sandbox');
    if (['/healthz', '/livez', '/readyz'].includes(pathname)) return void response.end('ok');
    const user = this.#authenticate(request);
    if (pathname === ACCESS_REVIEWS && request.method === 'POST') {
      // kubectl sends it as protobuf, and reads the status alone.
      request.resume();
      return sendJson(response, 201, { ...ACCESS_REVIEW, spec: {}, status: { allowed: true } });
    }
    const configz = this.#options.configz?.(CONFIGZ.exec(pathname)?.[1] ?? '');
    if (configz) return sendJson(response, 200, configz);
    const discovered = request.method === 'GET' && this.#discover(pathname);
    if (discovered) return sendJson(response, 200, discovered);
    const route = findRoute(pathname);
    if (!route || !isServed(this.store, route.type)) throw noSuchPath();
    const { bookmarkSeconds = 60, processes } = this.#options;
    const deps = {
      store: this.store,
      registry: this.registry,
      bookmarkSeconds,
      stopping: this.#stopping.signal,
      processes,
    };
    await handleResource(deps, { request, response, query, route, user });
  }

  #discover(path: string): JsonRecord | undefined {
    const address = this.#url.slice('https://'.length);
    return discover(path, address, servedTypes(this.store)) ?? this.#openApi.document(path);
  }

  #refuse(response: ServerResponse, error: unknown): void {
    if (!(error instanceof ApiError)) this.#options.onFault?.(error);
    const refusal = apiError(error);
    if (response.headersSent) response.destroy();
    else sendJson(response, refusal.http, refusal.toStatus());
  }

  #upgrade(request: IncomingMessage, socket: Duplex): void {
    socket.on('error', () => undefined);
    try {
      this.#authenticate(request);
      const { pathname, searchParams } = new URL(request.url ?? '/', 'https://sandbox');
      const route = findRoute(pathname);
      if (route?.name === undefined || route.type !== PODS || route.subresource !== 'portforward') throw noSuchPath();
      const pod = this.registry.get({ ...route, name: route.name, subresource: '' }) as KubePod;
      const ports = searchParams.getAll('ports');
      const port = ports.length === 1 ? Number(ports[0]) : Number.NaN;
      forwardPort(request, socket, port, this.#options.processes?.localPort(pod, port));
    } catch (error) {
      const { http, message } = apiError(error);
      refuseUpgrade(socket, http, message);
    }
  }
}

function firstNamespace(name: string) {
  return {
    apiVersion: 'v1',
    kind: NAMESPACES.kind,
    metadata: {
      name,
      uid: `00000000-0000-4000-8000-${Buffer.from(name).toString('hex').padEnd(12, '0').slice(0, 12)}`,
      creationTimestamp: formatTime(Date.now()),
      labels: { 'kubernetes.io/metadata.name': name },
    },
    status: { phase: 'Active' },
  };
}
