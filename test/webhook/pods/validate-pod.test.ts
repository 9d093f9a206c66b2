import assert from 'node:assert/strict';
import { podVector, requestFor, validationOf } from '../launcher-fixture.ts';

describe('the validation of pods', () => {
  const bound = { ...requestFor({ kind: 'Binding' }), kind: { group: '', version: 'v1', kind: 'Binding' } };
  for (const [what, request] of [
    ['another kind', bound],
    ['an update that is not a resize', { ...requestFor(podVector()), operation: 'UPDATE' as const }],
  ] as const) {
    it(`admits ${what}`, async () => {
      assert.deepEqual(await validationOf()(request), { allowed: true });
    });
  }
});
