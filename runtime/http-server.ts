import { createServer, IncomingMessage, type RequestListener, type Server, ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { type CertificateFiles, loadCertificate, watchCertificate } from './certificate.ts';
import type { Logger } from './log.ts';
import { sleep } from './time.ts';

/**
 * Milliseconds an idle connection is kept. Kubernetes clients keep theirs for 90 s and do not repeat a POST whose
 * connection turns out closed, so the server must be the more patient side.
 */
const KEEP_ALIVE = 120_000;
/** Must exceed KEEP_ALIVE, or Node.js closes the connection on the next request's first bytes. */
const HEADERS_TIMEOUT = 125_000;

export interface HttpServerOptions {
  readonly handler: RequestListener;
  readonly host: string;
  /** 0 takes a free port; `port` of the started server tells which. */
  readonly port: number;
  readonly certificate?: CertificateFiles | undefined;
  readonly log: Logger;
}

export interface HttpServer {
  /** Listens; rejects if the address is taken or the certificate unusable. */
  start(): Promise<void>;
  /** From now on every answer asks its client to connect anew, so that none is left on a connection when it ends. */
  drain(): void;
  /** Stops accepting, lets requests in flight finish for up to `seconds`, then closes what is left. */
  stop(seconds?: number): Promise<void>;
  /** The port in use, once started. */
  readonly port: number;
}

/** An HTTP server, or an HTTPS one that follows its certificate as it is renewed. Nothing listens before `start`. */
export function createHttpServer({ handler, host, port, certificate, log }: HttpServerOptions): HttpServer {
  let server: Server | undefined;
  let unwatch: (() => void) | undefined;
  let draining = false;

  const answer: RequestListener = (request, response) => {
    if (draining) response.setHeader('connection', 'close');
    handler(request, response);
  };

  const build = async (): Promise<Server> => {
    if (certificate === undefined) return createServer(messagesOf(handler), answer);
    const requestCert = certificate.clientCaFile !== undefined;
    const context = await loadCertificate(certificate);
    const tls = createTlsServer(
      { ...context, ...messagesOf(handler), minVersion: 'TLSv1.2', requestCert, rejectUnauthorized: requestCert },
      answer,
    );
    unwatch = watchCertificate(certificate, log, (renewed) => {
      tls.setSecureContext(renewed);
      log.info({ certFile: certificate.certFile }, 'serving a renewed certificate');
    });
    return tls;
  };

  return {
    async start() {
      const built = await build();
      built.keepAliveTimeout = KEEP_ALIVE;
      built.headersTimeout = HEADERS_TIMEOUT;
      await new Promise<void>((resolve, reject) => {
        built.once('error', reject);
        built.listen(port, host, () => {
          built.off('error', reject);
          resolve();
        });
      });
      server = built;
    },

    drain() {
      draining = true;
    },

    async stop(seconds = 10) {
      draining = true;
      unwatch?.();
      if (server === undefined) return;
      const stopping = server;
      server = undefined;
      const closed = new Promise<void>((resolve) => stopping.close(() => resolve()));
      const sweep = setInterval(() => stopping.closeIdleConnections(), 50);
      await Promise.race([closed, sleep(seconds)]);
      clearInterval(sweep);
      stopping.closeAllConnections();
      await closed;
    },

    get port() {
      return (server?.address() as AddressInfo | null)?.port ?? 0;
    },
  };
}

/**
 * Constructors of messages that have the prototypes which express gives each of them: it then has none to exchange, at
 * which V8 would give up what it knows of the object. That is a fifth of what a review costs.
 */
function messagesOf(handler: RequestListener & { readonly request?: object; readonly response?: object }) {
  const { request, response } = handler;
  if (request === undefined || response === undefined) return {};
  function Request(this: IncomingMessage, ...args: unknown[]): void {
    Reflect.apply(IncomingMessage, this, args);
  }
  function Response(this: ServerResponse, ...args: unknown[]): void {
    Reflect.apply(ServerResponse, this, args);
  }
  Request.prototype = request;
  Response.prototype = response;
  return {
    IncomingMessage: Request as unknown as typeof IncomingMessage,
    ServerResponse: Response as unknown as typeof ServerResponse,
  };
}
