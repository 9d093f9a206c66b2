import assert from 'node:assert/strict';
import { createHttpServer, type HttpServer } from '../../runtime/http-server.ts';
import { JsonBodies } from '../../runtime/json-bodies.ts';
import { createRegistry } from '../../runtime/metrics.ts';
import { createWebhookApp, createWebhookMetrics, PATHS } from '../../webhook/app.ts';
import { silent } from '../support/logger.ts';
import { requestFor } from './launcher-fixture.ts';

describe('connections after a request that the webhook refuses', () => {
  let server: HttpServer;
  let fails = false;
  before(async () => {
    const review = async () => {
      if (fails) throw new TypeError('a mistake');
      return { allowed: true } as const;
    };
    const handler = createWebhookApp({
      reviews: {
        mutatePods: review,
        routePods: review,
        validatePods: review,
        mutateVmis: review,
        validateVms: review,
        require: review,
      },
      bodies: new JsonBodies({ maxBodyBytes: 1000 }),
      metrics: createWebhookMetrics(createRegistry()),
      log: silent,
    });
    server = createHttpServer({ handler, host: '127.0.0.1', port: 0, log: silent });
    await server.start();
  });
  after(() => server.stop(0));

  const post = async (body: string, path: string = PATHS.mutatePods) => {
    const response = await fetch(`http://127.0.0.1:${server.port}${path}`, { method: 'POST', body });
    await response.text();
    return [response.status, response.headers.get('connection')];
  };
  const review = () =>
    JSON.stringify({ apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview', request: requestFor({}) });

  it('are closed if part of the body was not read, and are kept otherwise', async () => {
    const tooLarge = await post('x'.repeat(2000));
    assert.deepEqual([tooLarge[0] === 413, tooLarge[1]], [true, 'close']);
    assert.deepEqual(await post('no JSON'), [400, 'keep-alive']);
    assert.deepEqual(await post(review(), '/other'), [404, 'keep-alive']);
    fails = true;
    assert.deepEqual(await post(review()), [500, 'keep-alive']);
    fails = false;
    assert.deepEqual(await post(review()), [200, 'keep-alive']);
  });
});
