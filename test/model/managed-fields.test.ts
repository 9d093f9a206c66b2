import assert from 'node:assert/strict';
import { ownsField } from '../../model/managed-fields.ts';

describe('managed fields', () => {
  for (const [what, fieldsV1, isOwner] of [
    ['the field', { 'f:spec': { 'f:renewTime': {} } }, true],
    ['another field', { 'f:spec': { 'f:holderIdentity': {} } }, false],
    ['a field of the same name elsewhere', { 'f:renewTime': {} }, false],
    ['a list instead of fields', { 'f:spec': [] }, false],
    ['nothing', undefined, false],
  ] as const) {
    it(`of ${what}: the manager ${isOwner ? 'owns' : 'does not own'} it`, () => {
      assert.equal(ownsField({ manager: 'm', fieldsV1 }, ['spec', 'renewTime']), isOwner);
    });
  }
});
