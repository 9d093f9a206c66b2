import { createServer, type RequestListener, type Server } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { PeerCertificate } from 'node:tls';
import {
  admitClients,
  type CertificateFiles,
  type Expiries,
  endOf,
  loadCertificate,
  readExpiries,
  watchCertificate,
} from './certificate.ts';
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

export type HttpServer = ReturnType<typeof createHttpServer>;

/**
 * An HTTP server, or an HTTPS server that reloads its certificate when it is renewed. It listens only after `start`.
 */
export function createHttpServer(options: HttpServerOptions) {
  const { handler, host, port, certificate, connections = MAX_CONNECTIONS, streams = false, log } = options;
  const { checkInterval = CHECK_SECONDS } = options;
  const limits = {
    headersTimeout: HEADERS_MILLISECONDS,
    requestTimeout: REQUEST_MILLISECONDS,
    connectionsCheckingInterval: checkInterval * 1000,
  };
  let server: Server | undefined;
  let unwatch: (() => void) | undefined;
  let draining = false;
  let lastArrival: number | undefined;
  let limit: ConnectionLimit = { open: 0, evicted: 0 };
  let expiries: Expiries = new Map();

  const answer: RequestListener = (request, response) => {
    lastArrival = monotonicSeconds();
    if (draining) response.setHeader('connection', 'close');
    handler(request, response);
  };

  const build = async (): Promise<Server> => {
    if (certificate === undefined) return createServer(limits, answer);
    const requestCert = certificate.clientCaFile !== undefined;
    const context = await loadCertificate(certificate);
    const tls = createTlsServer(
      {
        ...limits,
        ...context,
        handshakeTimeout: HANDSHAKE_MILLISECONDS,
        minVersion: 'TLSv1.2',
        requestCert,
        rejectUnauthorized: requestCert,
      },
      answer,
    );
    const ends = await readExpiries(String(context.cert), certificate);
    expiries = ends;
    if (requestCert) {
      const onKnown = ({ valid_to }: PeerCertificate) => void ends.set('client', endOf(valid_to));
      admitClients(tls, certificate.clientNames ?? new Set(), onKnown, log);
    }
    unwatch = watchCertificate(certificate, log, (renewed) => {
      tls.setSecureContext(renewed);
      void readExpiries(String(renewed.cert), certificate).then((read) => {
        for (const [which, end] of read) ends.set(which, end);
      });
      log.info({ certFile: certificate.certFile }, 'certificate reloaded');
    });
    return tls;
  };

  return {
    /** Listens; rejects if the address is taken or the certificate unusable. */
    async start() {
      const built = await build();
      built.keepAliveTimeout = KEEP_ALIVE_MILLISECONDS;
      if (!streams) built.timeout = STALLED_ANSWER_MILLISECONDS;
      limit = limitConnections(built, connections);
      built.on('connection', () => {
        lastArrival = monotonicSeconds();
      });
      await new Promise<void>((resolve, reject) => {
        built.once('error', reject);
        built.listen(port, host, () => {
          built.off('error', reject);
          resolve();
        });
      });
      server = built;
    },

    /** From now on every answer asks its client to reconnect, so that no client is on a connection when it closes. */
    drain() {
      draining = true;
    },

    /** Stops accepting, lets requests in flight finish for up to `seconds`, then closes the remaining connections. */
    async stop(seconds: number = 10) {
      draining = true;
      unwatch?.();
      if (server === undefined) return;
      const stopping = server;
      server = undefined;
      await arrivalsRead();
      const closed = new Promise<void>((resolve) => stopping.close(() => resolve()));
      const sweep = setInterval(() => void arrivalsRead().then(() => stopping.closeIdleConnections()), 50);
      await Promise.race([closed, sleep(seconds)]);
      clearInterval(sweep);
      stopping.closeAllConnections();
      await closed;
    },

    get connections() {
      return limit;
    },

    /** Monotonic seconds of the last connection or request; undefined before the first. */
    get lastArrival() {
      return lastArrival;
    },

    /** When the certificates expire; empty without TLS. */
    get expiries() {
      return expiries;
    },

    get port() {
      return (server?.address() as AddressInfo | null)?.port ?? 0;
    },
  };
}

/**
 * Resolves after everything that has arrived was read: a request in the kernel would be lost with its idle connection.
 */
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
export function isLoopback(host: string): boolean {
  return LOOPBACK.test(host);
}

/**
 * Whether the Host header names this listener, with any port: otherwise a page of another site may ask by DNS
 * rebinding.
 */
export function isOwnHost(header: string | undefined, listensOn: string): boolean {
  const [, v6, host = v6] = /^(?:\[([0-9a-f:.]+)\]|([^:[\]\s]+))(?::[0-9]{1,5})?$/i.exec(header ?? '') ?? [];
  return host !== undefined && (isLoopback(host) || host.toLowerCase() === listensOn.toLowerCase());
}
