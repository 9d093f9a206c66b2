import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { buildOnce, bundledFiles, root } from '../support/bundles.ts';
import { missingFrom, promisesOf } from '../support/promises.ts';

const PAGE = 'docs/maintainers/conformance.md';
const PROMISES = promisesOf(PAGE);
const TEXT = readFileSync(join(root, PAGE), 'utf8');

describe(PAGE, () => {
  it('has five designs of several rows each, numbered without gaps, and each row names code and a test', () => {
    const rows = TEXT.split('\n').filter((line) => /^\| \d/.test(line));
    assert.equal(PROMISES.length, rows.length, 'a row without a test');
    for (let design = 1; design <= 5; design++) {
      const numbers = PROMISES.map(({ name }) => name).filter((name) => name.startsWith(`${design}.`));
      const gapless = numbers.map((_, i) => `${design}.${i + 1}`);
      assert.deepEqual(numbers, gapless);
      assert.ok(numbers.length >= 10, `design ${design}: ${numbers.length} rows`);
    }
    for (const { name, code } of PROMISES) assert.ok(code.length > 0, `row ${name} names no code`);
  });

  it('names code that a program contains', function () {
    this.timeout(120_000);
    buildOnce();
    const bundled = bundledFiles();
    const isProduct = (path: string) => path.endsWith('.ts') && !path.startsWith('test/');
    for (const { name, code } of PROMISES)
      assert.equal(
        code
          .filter(isProduct)
          .filter((path) => !bundled.has(path))
          .join(),
        '',
        name,
      );
  });

  for (const promise of PROMISES) {
    it(`${promise.name}: ${promise.file} ${promise.title}`, () => assert.equal(missingFrom(promise), undefined));
  }
});
