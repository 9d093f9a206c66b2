import assert from 'node:assert/strict';
import { denialOf, podVector, requestFor, setCpu, validationOf } from '../launcher-fixture.ts';

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

  it('refuses a resize of an amount that is malformed', async () => {
    const [before, after] = [podVector(), podVector()];
    setCpu(before, 'many');
    const resize = { operation: 'UPDATE', subResource: 'resize', oldObject: before } as const;
    const { code, message } = denialOf(await validationOf()(requestFor(after, resize)));
    assert.equal(code, 400);
    assert.match(message, /"many"/);
  });
});
