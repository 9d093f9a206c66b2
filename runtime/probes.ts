import type { RequestListener } from 'node:http';
import { HttpServer } from './http-server.ts';
import type { Logger } from './log.ts';
import type { Registry } from './metrics.ts';

/** Seconds between checks for clients that send no request: few, as the port is for programs of the same node. */
const CHECK_SECONDS = 30;

/** Why a daemon is not ready, as text for `kubectl describe`; undefined when it is ready. */
export type Readiness = () => string | undefined;

interface ProbeServerOptions {
  readonly host: string;
  readonly port: number;
  readonly notReady: Readiness;
  readonly registry: Registry;
  /** More pages, served as JSON, by path. */
  readonly pages?: Readonly<Record<string, () => unknown>>;
  readonly log: Logger;
}

/** Serves `/healthz`, `/readyz` and `/metrics` over plain HTTP, so that probes need no certificate. */
export function createProbeServer({ host, port, notReady, registry, pages = {}, log }: ProbeServerOptions): HttpServer {
  const handler: RequestListener = (request, response) => {
    const answer = (status: number, text: string, type = 'text/plain; charset=utf-8') => {
      response.writeHead(status, { 'content-type': type, 'content-length': Buffer.byteLength(text) });
      response.end(request.method === 'HEAD' ? undefined : text);
    };
    if (request.method !== 'GET' && request.method !== 'HEAD') return answer(405, 'method not allowed; use GET\n');
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
            answer(500, 'cannot collect the metrics; see the log\n');
          },
        );
        return;
      default: {
        const paths = ['/healthz', '/readyz', '/metrics', ...Object.keys(pages)];
        return answer(404, `not found; the paths are ${paths.join(', ')}\n`);
      }
    }
  };
  return new HttpServer({ handler, host, port, checkInterval: CHECK_SECONDS, log });
}
