import type { RequestListener } from 'node:http';
import { createHttpServer, type HttpServer } from './http-server.ts';
import type { Logger } from './log.ts';
import type { Registry } from './metrics.ts';

/** Why a daemon is not ready, in words for `kubectl describe`, or undefined when it is. */
export type Readiness = () => string | undefined;

export interface ProbeServerOptions {
  readonly host: string;
  readonly port: number;
  readonly notReady: Readiness;
  readonly registry: Registry;
  /** What else is answered, as JSON, by path. */
  readonly pages?: Readonly<Record<string, () => unknown>>;
  readonly log: Logger;
}

/**
 * `/healthz`, `/readyz` and `/metrics` over plain HTTP on a port of their own, which needs no certificate and no client's
 * trust. Three fixed paths need no router.
 */
export function createProbeServer({ host, port, notReady, registry, pages = {}, log }: ProbeServerOptions): HttpServer {
  const handler: RequestListener = (request, response) => {
    const answer = (status: number, text: string, type = 'text/plain; charset=utf-8') => {
      response.writeHead(status, { 'content-type': type, 'content-length': Buffer.byteLength(text) });
      response.end(request.method === 'HEAD' ? undefined : text);
    };
    if (request.method !== 'GET' && request.method !== 'HEAD') return answer(405, 'only GET is answered\n');
    const path = request.url?.split('?')[0] ?? '';
    const page = Object.hasOwn(pages, path) ? pages[path] : undefined;
    if (page !== undefined) return answer(200, `${JSON.stringify(page())}\n`, 'application/json');
    switch (path) {
      case '/healthz':
        return answer(200, 'ok\n');
      case '/readyz': {
        const reason = notReady();
        return answer(reason === undefined ? 200 : 503, `${reason ?? 'ok'}\n`);
      }
      case '/metrics':
        registry.metrics().then(
          (text) => answer(200, text, registry.contentType),
          (err: unknown) => {
            log.error({ err }, 'metrics collection failed');
            answer(500, 'the metrics cannot be collected\n');
          },
        );
        return;
      default:
        return answer(404, `there are ${['/healthz', '/readyz', '/metrics', ...Object.keys(pages)].join(', ')}\n`);
    }
  };
  return createHttpServer({ handler, host, port, log });
}
