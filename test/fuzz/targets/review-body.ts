import assert from 'node:assert/strict';
import fc from 'fast-check';
import { assertBoundedJson, JsonTooLarge } from '../../../runtime/json-bounds.ts';
import { ReviewError } from '../../../webhook/review/admission-review.ts';
import { answerReview, mutationOf, podVector, requestFor } from '../../webhook/launcher-fixture.ts';
import { almost, withLong } from '../mutation.ts';
import type { Target } from '../target.ts';

const UID = 'u';
const text = (object: unknown) =>
  JSON.stringify({
    apiVersion: 'admission.k8s.io/v1',
    kind: 'AdmissionReview',
    request: requestFor(object, { uid: UID }),
  });
const pod = podVector();
const amounts = fc.record({ cpu: fc.constantFrom('1', '2', '500m', '1e0', '-1'), memory: fc.constantFrom('1Gi', '1') });
const container = fc.record({
  name: fc.constantFrom('compute', 'a', 'b'),
  resources: fc.record({ requests: amounts, limits: amounts }),
});
const review = fc
  .array(container, { minLength: 1, maxLength: 3 })
  .map((containers) => text({ ...pod, spec: { ...pod.spec, containers } }));

/** The text before and after the containers. */
const [HEAD = '', TAIL = ''] = text({ ...pod, spec: { ...pod.spec, containers: ['@'] } }).split('"@"');
const AMOUNTS = '{"requests":{"cpu":"2","memory":"1Gi"},"limits":{"cpu":"2","memory":"1Gi"}}';

const mutate = mutationOf();
const answer = (bytes: Buffer) => {
  assertBoundedJson(bytes);
  return answerReview(bytes, mutate);
};

export const reviewBody: Target<string> = {
  name: 'review-body',
  about: 'reviews of pods with more and more containers get an answer with their uid, or a 4xx',
  inputs: withLong(
    almost(review, [text(pod), text(podVector('hp-volume-pod'))]),
    200_000,
    { head: HEAD, piece: '{"name":"a"}', joint: ',', tail: TAIL },
    { head: HEAD, piece: (i) => `{"name":"c${i}","resources":${AMOUNTS}}`, joint: ',', tail: TAIL },
    { head: HEAD, piece: '{"name":', tail: `1${TAIL}`, closing: '}' },
    { head: '{"kind":"', piece: '\\u0041', tail: '"}' },
  ),
  async judge(body) {
    try {
      const { body: reply } = await answer(Buffer.from(body));
      const { response } = JSON.parse(reply) as { response: { uid: string } };
      assert.equal(response.uid, (JSON.parse(body) as { request: { uid: string } }).request.uid);
      return 'accepted';
    } catch (error) {
      assert.ok(error instanceof ReviewError || error instanceof JsonTooLarge, String(error));
      assert.ok(error.message.length > 0 && error.message.length <= 1500);
      return 'refused';
    }
  },
};
