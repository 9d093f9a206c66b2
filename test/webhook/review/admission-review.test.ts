import assert from 'node:assert/strict';
import { decodeReview, refused } from '../../../webhook/review/admission-review.ts';
import { podVector, requestFor } from '../launcher-fixture.ts';

const bodyOf = (request: object) =>
  JSON.parse(JSON.stringify({ apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview', request }));
/** Fields that API servers send and that no decision needs. */
const MORE = { resource: { group: '', version: 'v1', resource: 'pods' }, requestKind: null, options: {} };
describe('an AdmissionReview', () => {
  it('is reduced to the fields that decisions need, with the whole object', () => {
    const request = requestFor(podVector());
    assert.deepEqual(decodeReview(bodyOf({ ...request, ...MORE })), JSON.parse(JSON.stringify(request)));
  });

  it('without a uid is refused', () => {
    assert.throws(() => decodeReview(bodyOf({ ...requestFor(podVector()), uid: '' })), /request\.uid/);
  });

  it('is refused with a short message, and with warnings only if there are any', () => {
    assert.deepEqual(refused(400, 'no'), { allowed: false, code: 400, message: 'plumbline: no' });
    assert.deepEqual(refused(422, 'no', ['w']).warnings, ['w']);
    assert.equal(refused(400, 'x'.repeat(2000)).message.length, 1024);
  });
});
