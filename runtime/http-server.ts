import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { admitClients, type CertificateFiles, type Expiries, readExpiries, ServingCertificate } from './certificate.ts';
import { type ConnectionLimit, limitConnections } from './connection-limit.ts';
import type { Logger } from './log.ts';
import { monotonicSeconds, sleep } from './time.ts';

/**
 * Milliseconds that an idle connection is kept. Kubernetes clients keep theirs for 90 s and do not repeat a POST whose
 * connection turns out to be closed, so the server must wait longer than they do.
 */
const KEEP_ALIVE_MILLISECONDS = 120_000;
/** Milliseconds for a TLS handshake, for a request's headers, and for a whole request. */
const HANDSHAKE_MILLISECONDS = 5000;
const HEADERS_MILLISECONDS = 5000;
const REQUEST_MILLISECONDS = 10_000;
const CHECK_SECONDS = 1;
/** Milliseconds without progress after which the server gives up on a caller that does not read its answer. */
const STALLED_ANSWER_MILLISECONDS = 20_000;
/** Connections at a time. The API server and the scheduler keep a few dozen. */
const MAX_CONNECTIONS = 256;

interface HttpServerOptions {
  readonly handler: RequestListener;
  readonly host: string;
  /** 0 takes a free port; `port` of the started server returns it. */
  readonly port: number;
  readonly certificate?: CertificateFiles | undefined;
  /** Seconds between checks of a request's time limits. Each check wakes the process. Default 1. */
  readonly checkInterval?: number;
  readonly connections?: number;
  /** Whether answers are streams that may be silent for long. Default false. */
  readonly streams?: boolean;
  readonly log: Logger;
}

/** An HTTP server, or an HTTPS server that reloads its renewed certificate. It listens only after `start`. */
export class HttpServer {
  readonly #options: HttpServerOptions;
  readonly #certificate: ServingCertificate | undefined;
  /** While it listens. */
  #server: Server | undefined;
  #isDraining = false;
  #lastArrival: number | undefined;
  #connections: ConnectionLimit = { open: 0, evicted: 0 };
  #expiries: Expiries = new Map();

  constructor(options: HttpServerOptions) {
    const { certificate, log } = options;
    this.#options = options;
    this.#certificate = certificate && new ServingCertificate(certificate, log);
  }

  get connections(): ConnectionLimit {
    return this.#connections;
  }

  /** Monotonic seconds of the last connection or request; undefined before the first. */
  get lastArrival(): number | undefined {
    return this.#lastArrival;
  }

  /** When the certificates expire; empty without TLS. */
  get expiries(): Expiries {
    return this.#expiries;
  }

  get port(): number {
    return (this.#server?.address() as AddressInfo | null)?.port ?? 0;
  }

  /** Listens; rejects if the address is taken or the certificate unusable. */
  async start(): Promise<void> {
    const { host, port, connections = MAX_CONNECTIONS, streams = false, log } = this.#options;
    const server = await this.#build();
    server.keepAliveTimeout = KEEP_ALIVE_MILLISECONDS;
    if (!streams) server.timeout = STALLED_ANSWER_MILLISECONDS;
    this.#connections = limitConnections(server, connections);
    server.on('connection', () => {
      this.#lastArrival = monotonicSeconds();
    });
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen(port, host, () => {
        server.off('error', reject);
        // For lack of memory or file descriptors, for example. The server keeps listening.
        server.on('error', (err) => log.error({ err }, 'accepting a connection failed'));
        resolve();
      });
    });
    this.#server = server;
  }

  /** From now on every answer asks its client to reconnect, so that no client is on a connection when it closes. */
  drain(): void {
    this.#isDraining = true;
  }

  /** Stops accepting, lets requests in flight finish for up to `seconds`, then closes the remaining connections. */
  async stop(seconds: number = 10): Promise<void> {
    this.#isDraining = true;
    this.#certificate?.stop();
    const server = this.#server;
    if (server === undefined) return;
    this.#server = undefined;
    await arrivalsRead();
    const closed = new Promise<void>((resolve) => server.close(() => resolve()));
    const sweep = setInterval(async () => {
      await arrivalsRead();
      server.closeIdleConnections();
    }, 50);
    await Promise.race([closed, sleep(seconds)]);
    clearInterval(sweep);
    server.closeAllConnections();
    await closed;
  }

  async #build(): Promise<Server> {
    const { checkInterval = CHECK_SECONDS, log } = this.#options;
    const limits = {
      headersTimeout: HEADERS_MILLISECONDS,
      requestTimeout: REQUEST_MILLISECONDS,
      connectionsCheckingInterval: checkInterval * 1000,
    };
    const answer: RequestListener = (request, response) => this.#answer(request, response);
    const certificate = this.#certificate;
    if (certificate === undefined) return createServer(limits, answer);
    const { files } = certificate;
    const requestCert = files.clientCaFile !== undefined;
    const context = await certificate.load();
    const authentication = { requestCert, rejectUnauthorized: requestCert };
    const protocol = { handshakeTimeout: HANDSHAKE_MILLISECONDS, minVersion: 'TLSv1.2' } as const;
    const server = createTlsServer({ ...limits, ...context, ...protocol, ...authentication }, answer);
    const expiries = await readExpiries(String(context.cert), files);
    this.#expiries = expiries;
    if (requestCert) {
      admitClients(server, files.clientNames ?? new Set(), (end) => expiries.set('client', end), log);
    }
    certificate.watch(async (renewed) => {
      server.setSecureContext(renewed);
      for (const [which, end] of await readExpiries(String(renewed.cert), files)) expiries.set(which, end);
      log.info({ certFile: files.certFile }, 'certificate reloaded');
    });
    return server;
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
    this.#lastArrival = monotonicSeconds();
    if (this.#isDraining) response.setHeader('connection', 'close');
    this.#options.handler(request, response as Parameters<RequestListener>[1]);
  }
}

/** Resolves when all that has arrived is read: a request in the kernel would be lost with its idle connection. */
async function arrivalsRead(): Promise<void> {
  // The first one may come in the current turn of the event loop, after its reads.
  for (let turn = 0; turn < 2; turn++) {
    await new Promise<void>((resolve) => {
      setImmediate(resolve);
    });
  }
}

export interface ListenAddress {
  readonly host: string;
  readonly port: number;
}

const ADDRESS = /^(?:\[([0-9a-f:.]+)\]|([^:[\]\s]+)):([0-9]{1,5})$/i;

/** Parses `host:port` or `[IPv6 address]:port`; undefined if the text is neither. Port 0 takes a free one. */
export function parseListenAddress(text: string): ListenAddress | undefined {
  const [, v6, host = v6, digits = ''] = ADDRESS.exec(text) ?? [];
  const port = Number(digits);
  return host === undefined || port > 65_535 ? undefined : { host, port };
}

const LOOPBACK = /^(?:localhost|127(?:\.[0-9]{1,3}){3}|::1)$/i;

/** Whether only processes of the same host or pod can reach an address. */
export const isLoopback = (host: string): boolean => LOOPBACK.test(host);

/** Whether the Host header names this listener, with any port; otherwise it may be DNS rebinding. */
export function isListenerHost(header: string | undefined, listensOn: string): boolean {
  const [, v6, host = v6] = /^(?:\[([0-9a-f:.]+)\]|([^:[\]\s]+))(?::[0-9]{1,5})?$/i.exec(header ?? '') ?? [];
  return host !== undefined && (isLoopback(host) || host.toLowerCase() === listensOn.toLowerCase());
}
