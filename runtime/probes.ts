import express, { type RequestHandler, Router } from 'express';
import { createHttpServer, type HttpServer } from './http-server.ts';
import type { Logger } from './log.ts';
import type { Registry } from './metrics.ts';

/** Why a daemon is not ready, in words for `kubectl describe`, or undefined when it is. */
export type Readiness = () => string | undefined;

/** `/healthz`, `/readyz` and `/metrics`. */
export function probes(notReady: Readiness, registry: Registry): RequestHandler {
  const router = Router();
  router.get('/healthz', (_request, response) => {
    response.type('text/plain').send('ok\n');
  });
  router.get('/readyz', (_request, response) => {
    const reason = notReady();
    response
      .status(reason === undefined ? 200 : 503)
      .type('text/plain')
      .send(`${reason ?? 'ok'}\n`);
  });
  router.get('/metrics', async (_request, response) => {
    response.type(registry.contentType).send(await registry.metrics());
  });
  return router;
}

export interface ProbeServerOptions {
  readonly host: string;
  readonly port: number;
  readonly notReady: Readiness;
  readonly registry: Registry;
  readonly log: Logger;
}

/** Serves the probes over plain HTTP on a port of their own, which needs no certificate and no client's trust. */
export function createProbeServer({ host, port, notReady, registry, log }: ProbeServerOptions): HttpServer {
  const app = express();
  app.disable('x-powered-by');
  app.use(probes(notReady, registry));
  return createHttpServer({ handler: app, host, port, log });
}
