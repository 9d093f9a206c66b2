import { type IncomingHttpHeaders, type RequestListener, request } from 'node:http';
import { createHttpServer, type HttpServer } from '../../runtime/http-server.ts';
import { createRegistry } from '../../runtime/metrics.ts';
import { createExplainer } from '../../scheduler-plugin/extender/explain.ts';
import { createExtenderApp } from '../../scheduler-plugin/http/app.ts';
import { createExtenderMetrics } from '../../scheduler-plugin/telemetry/metrics.ts';
import { silent } from '../support/logger.ts';
import { type ExtenderUnderTest, podOf } from './extender-fixture.ts';

/** The routes of an extender; the API server has one pod. */
export function appOf(
  { extender, decisions }: Pick<ExtenderUnderTest, 'extender' | 'decisions'>,
  more: Partial<Parameters<typeof createExtenderApp>[0]> = {},
): ReturnType<typeof createExtenderApp> {
  const client = { get: async () => podOf('4') };
  const explainer = createExplainer({ extender, decisions, client, isActive: () => true });
  const metrics = createExtenderMetrics(createRegistry());
  return createExtenderApp({ extender, explainer, unpredictable: 'refuse', metrics, log: silent, ...more });
}

interface Answer {
  readonly status: number | undefined;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
}

/** A server for all tests of a suite, with the routes that each test sets. */
export function useServer() {
  let server: HttpServer;
  let answering: RequestListener = () => undefined;
  before(async () => {
    const handler: RequestListener = (call, response) => answering(call, response);
    server = createHttpServer({ handler, host: '127.0.0.1', port: 0, log: silent });
    await server.start();
  });
  after(() => server.stop(0));

  /** By node:http, so that headers are seen as sent. */
  const begin = (path: string, length: number, method = 'POST') => {
    const to = { host: '127.0.0.1', port: server.port, path, method, agent: false };
    const call = request({ ...to, headers: { 'content-length': length, connection: 'keep-alive' } });
    const answer = new Promise<Answer>((resolve, reject) => {
      call.on('error', reject).on('response', (response) => {
        let text = '';
        response.setEncoding('utf8').on('data', (chunk: string) => {
          text += chunk;
        });
        response.on('end', () => resolve({ status: response.statusCode, headers: response.headers, text }));
      });
    });
    return { call, answer };
  };
  return {
    get port() {
      return server.port;
    },
    serve(handler: RequestListener) {
      answering = handler;
    },
    /** A call whose body the test sends. */
    begin,
    ask(path: string, body = '', method?: string): Promise<Answer> {
      const { call, answer } = begin(path, Buffer.byteLength(body), method);
      call.end(body);
      return answer;
    },
  };
}
