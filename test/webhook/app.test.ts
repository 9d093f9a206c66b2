import assert from 'node:assert/strict';
import { HttpServer } from '../../runtime/http-server.ts';
import { createRegistry } from '../../runtime/metrics.ts';
import { createWebhookApp, createWebhookMetrics } from '../../webhook/app.ts';
import type { AdmissionAnswer, Review } from '../../webhook/review/admission-review.ts';
import { recordingLogger } from '../support/logger.ts';
import { requestFor } from './launcher-fixture.ts';

interface Answer {
  readonly kind: string;
  readonly response: { readonly allowed: boolean; readonly status?: { readonly message: string } };
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
    const pods = { mutatePods: review, routePods: review, validatePods: review };
    const reviews = { ...pods, mutateVmis: review, validateVms: review, require: review };
    const { handler } = createWebhookApp({ reviews, metrics, log });
    server = new HttpServer({ handler, host: '127.0.0.1', port: 0, log });
    await server.start();
  });
  after(() => server.stop(0));

  const post = async (body: string | Uint8Array, path = '/mutate-pods') => {
    const response = await fetch(`http://127.0.0.1:${server.port}${path}`, { method: 'POST', body });
    return { status: response.status, review: (await response.json()) as Answer };
  };
  const reviewOf = (object: unknown) =>
    JSON.stringify({ apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview', request: requestFor(object) });

  const PATCH = [{ op: 'remove', path: '/x' }] as const;
  const patch = Buffer.from(JSON.stringify(PATCH)).toString('base64');
  const answers: [what: string, answer: AdmissionAnswer, outcome: string, response: object][] = [
    [
      'patch and patchType together',
      { allowed: true, patch: PATCH },
      'patched',
      { allowed: true, patch, patchType: 'JSONPatch' },
    ],
    ['neither of them for an empty patch', { allowed: true, patch: [] }, 'unchanged', { allowed: true }],
    ['neither of them without a patch', { allowed: true }, 'unchanged', { allowed: true }],
    [
      'at most 256 characters of a warning',
      { allowed: true, warnings: ['w'.repeat(300)] },
      'unchanged',
      { allowed: true, warnings: [`${'w'.repeat(255)}…`] },
    ],
    [
      'a denial with its code and message',
      { allowed: false, code: 503, message: 'try again' },
      'denied',
      { allowed: false, status: { code: 503, message: 'try again' } },
    ],
  ];
  for (const [what, answer, outcome, response] of answers)
    it(`sends ${what}, with the uid, and counts it as ${outcome}`, async () => {
      decide = async () => answer;
      const before = await counted(outcome);
      const { status, review } = await post(reviewOf({}));
      assert.equal(status, 200);
      assert.deepEqual(review.response, { uid: requestFor({}).uid, ...response });
      assert.equal(await counted(outcome), before + 1);
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
  for (const [name, body, status, message] of malformed)
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

  it('shows the first 80 characters of another path', async () => {
    const { review } = await post('{}', `/${'x'.repeat(100)}`);
    assert.match(review.response.status?.message ?? '', /^POST \/x{79}: /);
  });
});
