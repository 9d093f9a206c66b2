import { createServer, type RequestListener, type Server } from 'node:http';
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
  /** Stops accepting, lets requests in flight finish for up to `seconds`, then closes what is left. */
  stop(seconds?: number): Promise<void>;
  /** The port in use, once started. */
  readonly port: number;
}

/** An HTTP server, or an HTTPS one that follows its certificate as it is renewed. Nothing listens before `start`. */
export function createHttpServer({ handler, host, port, certificate, log }: HttpServerOptions): HttpServer {
  let server: Server | undefined;
  let unwatch: (() => void) | undefined;

  const build = async (): Promise<Server> => {
    if (certificate === undefined) return createServer(handler);
    const requestCert = certificate.clientCaFile !== undefined;
    const context = await loadCertificate(certificate);
    const tls = createTlsServer(
      { ...context, minVersion: 'TLSv1.2', requestCert, rejectUnauthorized: requestCert },
      handler,
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

    async stop(seconds = 10) {
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
