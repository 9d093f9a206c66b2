import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import { listenOnLoopback } from './processes.ts';

export interface JsonAnswer {
  readonly status?: number;
  readonly body?: unknown;
}

/** Answers each request, on a port of 127.0.0.1; with a certificate over TLS. */
export async function serveJson(
  answer: (request: IncomingMessage) => JsonAnswer | Promise<JsonAnswer>,
  pair?: { readonly cert: string; readonly key: string },
) {
  const handle = async (request: IncomingMessage, response: ServerResponse) => {
    const { status = 200, body } = await answer(request);
    response.writeHead(status, { 'content-type': 'application/json' });
    response.end(body === undefined ? '' : JSON.stringify(body));
  };
  const listen = (request: IncomingMessage, response: ServerResponse) => void handle(request, response);
  const server = pair === undefined ? createServer(listen) : createSecureServer({ ...pair }, listen);
  return {
    port: await listenOnLoopback(server),
    async stop() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
