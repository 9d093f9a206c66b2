import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../support/bundles.ts';

const PAGE = readFileSync(join(root, 'docs/security.md'), 'utf8');

/** The last column of the tables: the test file, and how the test's title begins. */
const PROMISES = [...PAGE.matchAll(/^\|.*\| `([\w/-]+)` ?([^|]*)\|$/gm)].map(([, file = '', title = '']) => ({
  file,
  title: title.trim(),
}));

describe('docs/security.md', () => {
  it('promises something', () => assert.ok(PROMISES.length > 30, `${PROMISES.length} promises`));

  for (const { file, title } of PROMISES) {
    it(`${file}: ${title || 'the whole file'}`, () => {
      const path = join(root, 'test', `${file}.test.ts`);
      assert.ok(existsSync(path), `there is no ${path}`);
      assert.ok(readFileSync(path, 'utf8').includes(title), `${file} has no test that begins with: ${title}`);
    });
  }
});
