import assert from 'node:assert/strict';
import { missingFrom, promisesOf } from '../support/promises.ts';

/** The last column of the tables: the test file, and how the test's title begins. */
const PROMISES = promisesOf('docs/reference/security.md');

describe('docs/reference/security.md', () => {
  it('promises something', () => assert.ok(PROMISES.length > 30, `${PROMISES.length} promises`));

  for (const promise of PROMISES) {
    const { file, title } = promise;
    it(`${file}: ${title || 'the whole file'}`, () => assert.equal(missingFrom(promise), undefined));
  }
});
