import assert from 'node:assert/strict';
import { missingFrom, promisesOf } from '../support/promises.ts';

/** The last column of the tables: the test file and the start of the test's title. */
const PROMISES = promisesOf('docs/reference/security.md');

describe('docs/reference/security.md', () => {
  it('has promises', () => assert.ok(PROMISES.length > 30, `${PROMISES.length} promises`));

  for (const promise of PROMISES) {
    const { file, title } = promise;
    it(`${file}: ${title || 'the whole file'}`, () => assert.equal(missingFrom(promise), undefined));
  }
});
