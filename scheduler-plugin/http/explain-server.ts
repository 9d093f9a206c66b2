import type { RequestListener } from 'node:http';
import { createHttpServer } from '../../runtime/http-server.ts';
import { isOwnHost, type ListenAddress } from '../../runtime/listen-address.ts';
import type { Logger } from '../../runtime/log.ts';
import type { ExtenderApp } from './app.ts';

export interface ExplainServerOptions {
  /** A loopback address. */
  readonly address: ListenAddress;
  readonly app: ExtenderApp;
  readonly log: Logger;
}

/** Maximum connections: only people use it. */
const CONNECTIONS = 16;

/**
 * Serves only /explain, in plain HTTP on the pod's loopback. The API server decides who may use it: it forwards the
 * port only to users who may create `pods/portforward`.
 */
export function createExplainServer({ address, app, log }: ExplainServerOptions) {
  const handler: RequestListener = (request, response) => {
    if (request.url?.split('?', 1)[0] !== '/explain') refuse(response, 404, 'expected GET or POST /explain');
    // A browser can be tricked into sending requests of other sites here under their own names (DNS rebinding).
    else if (!isOwnHost(request.headers.host, address.host)) refuse(response, 421, 'use http://localhost');
    else app.handler(request, response);
  };
  const server = createHttpServer({ handler, ...address, connections: CONNECTIONS, log });
  return {
    /** Never rejects: the extender works without it. */
    async start(): Promise<void> {
      try {
        await server.start();
        log.info({ host: address.host, explainPort: server.port }, 'serving explanations');
      } catch (err) {
        log.warn({ err, ...address }, 'explain server failed to start (--explain-address)');
      }
    },
    stop: () => server.stop(0),
  };
}

function refuse(response: Parameters<RequestListener>[1], status: number, message: string): void {
  const text = `${message}\n`;
  response.writeHead(status, { 'content-type': 'text/plain; charset=utf-8', 'content-length': text.length });
  response.end(text);
}
