import assert from 'node:assert/strict';
import { createHttpServer, type HttpServer } from '../../runtime/http-server.ts';
import { createRegistry } from '../../runtime/metrics.ts';
import { createWebhookApp, createWebhookMetrics, PATHS } from '../../webhook/app.ts';
import type { Review } from '../../webhook/review/admission-review.ts';
import { recordingLogger } from '../support/logger.ts';
import { requestFor } from './launcher-fixture.ts';

interface Answer {
  apiVersion: string;
  kind: string;
  response: {
    uid: string;
    allowed: boolean;
    patch?: string;
    patchType?: string;
    warnings?: string[];
    status?: { code: number; message: string };
  };
}

describe('the webhook over HTTP', () => {
  const { log, lines } = recordingLogger();
  let server: HttpServer;
  let decide: Review = async () => ({ allowed: true });
  const metrics = createWebhookMetrics(createRegistry());
  /** The number of reviews with this outcome. */
  const counted = async (outcome: string) =>
    (await metrics.reviews.get()).values
      .filter(({ labels }) => labels['outcome'] === outcome)
      .reduce((sum, { value }) => sum + value, 0);

  before(async () => {
    const review: Review = (request) => decide(request);
    const handler = createWebhookApp({
      reviews: {
        mutatePods: review,
        routePods: review,
        validatePods: review,
        mutateVmis: review,
        validateVms: review,
        require: review,
      },
      metrics,
      log,
    });
    server = createHttpServer({ handler, host: '127.0.0.1', port: 0, log });
    await server.start();
  });
  after(() => server.stop(0));

  const post = async (body: string | Uint8Array, path: string = PATHS.mutatePods) => {
    const response = await fetch(`http://127.0.0.1:${server.port}${path}`, { method: 'POST', body });
    return { status: response.status, review: (await response.json()) as Answer };
  };
  const reviewOf = (object: unknown) =>
    JSON.stringify({ apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview', request: requestFor(object) });

  it('returns the uid, and sends patch and patchType together or not at all', async () => {
    decide = async () => ({ allowed: true, patch: [{ op: 'remove', path: '/x' }], warnings: ['w'.repeat(300)] });
    const { status, review } = await post(reviewOf({}));
    assert.equal(status, 200);
    assert.equal(review.response.uid, requestFor({}).uid);
    assert.equal(review.response.patchType, 'JSONPatch');
    assert.deepEqual(JSON.parse(Buffer.from(review.response.patch ?? '', 'base64').toString()), [
      { op: 'remove', path: '/x' },
    ]);
    assert.equal(review.response.warnings?.[0]?.length, 256);
    decide = async () => ({ allowed: true, patch: [] });
    const { response } = (await post(reviewOf({}))).review;
    assert.deepEqual([response.patch, response.patchType], [undefined, undefined]);
  });

  it('sends a denial with its code and message, and counts it', async () => {
    decide = async () => ({ allowed: false, code: 503, message: 'try again' });
    const before = await counted('denied');
    const { response } = (await post(reviewOf({}))).review;
    assert.deepEqual([response.allowed, response.status], [false, { code: 503, message: 'try again' }]);
    assert.equal(await counted('denied'), before + 1);
  });

  it('counts a review with a patch apart from one without', async () => {
    for (const [patch, outcome] of [
      [[{ op: 'remove', path: '/x' }], 'patched'],
      [[], 'unchanged'],
      [undefined, 'unchanged'],
    ] as const) {
      decide = async () => ({ allowed: true, ...(patch === undefined ? {} : { patch }) });
      const before = await counted(outcome);
      await post(reviewOf({}));
      assert.equal(await counted(outcome), before + 1, outcome);
    }
  });

  it('answers an internal failure with 500 and no patch', async () => {
    decide = async () => {
      throw new Error('a secret detail');
    };
    const before = [await counted('failed'), await counted('malformed')];
    const { status, review } = await post(reviewOf({}));
    assert.equal(status, 500);
    assert.equal(review.response.allowed, false);
    assert.deepEqual([await counted('failed'), await counted('malformed')], [before[0]! + 1, before[1]]);
    assert.doesNotMatch(JSON.stringify(review), /secret/);
    assert.equal(lines.at(-1)?.['msg'], 'review failed');
  });

  const malformed: readonly (readonly [name: string, body: string | Uint8Array, status: number, message: RegExp])[] = [
    ['malformed JSON', '{"apiVersion": "admission', 400, /it is not JSON/],
    [
      'the wrong apiVersion',
      reviewOf({}).replace('admission.k8s.io/v1', 'admission.k8s.io/v1beta1'),
      400,
      /apiVersion/,
    ],
    ['bytes that are not UTF-8', Uint8Array.of(0x7b, 0xff, 0xfe), 400, /not JSON/],
    ['a body of 10 MiB', ' '.repeat(10 * 1024 * 1024), 413, /larger than/],
  ];
  for (const [name, body, status, message] of malformed) {
    it(`refuses ${name} in the form of an AdmissionReview`, async () => {
      decide = async () => ({ allowed: true });
      const before = [await counted('failed'), await counted('malformed')];
      const answer = await post(body);
      assert.equal(answer.status, status);
      assert.deepEqual([await counted('failed'), await counted('malformed')], [before[0], before[1]! + 1]);
      assert.equal(answer.review.kind, 'AdmissionReview');
      assert.equal(answer.review.response.allowed, false);
      assert.match(answer.review.response.status?.message ?? '', message);
      const { msg, status: logged } = lines.at(-1) ?? {};
      assert.deepEqual([msg, logged], ['request refused', status]);
    });
  }

  it('shows the first 80 characters of another path', async () => {
    const { review } = await post('{}', `/${'x'.repeat(100)}`);
    assert.match(review.response.status?.message ?? '', /^POST \/x{79}: /);
  });
});
