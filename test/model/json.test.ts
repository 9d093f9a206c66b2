import assert from 'node:assert/strict';
import { isObject, parseJson, resultOrNone } from '../../model/json.ts';

describe('decoded JSON', () => {
  it('is an object, or neither a list, null nor a plain value', () => {
    assert.deepEqual(['{}', '[]', 'null', '1', '"x"'].map(parseJson).map(isObject), [true, false, false, false, false]);
  });

  it('is undefined if the text is malformed', () => assert.equal(parseJson('{'), undefined));

  it('a result is undefined if its function throws', () => {
    assert.equal(
      resultOrNone(() => {
        throw new Error('no');
      }),
      undefined,
    );
    assert.equal(
      resultOrNone(() => 1),
      1,
    );
  });
});
