import type { RequestHandler } from 'express';
import { Router } from 'express';
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
