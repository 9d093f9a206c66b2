import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { buildOnce, bundledFiles } from '../support/bundles.ts';
import { runVectors } from './run.ts';

/** The same cases as `run.ts` counts one by one: here a test for each file, so that no test run passes them over. */
describe('vectors', () => {
  it('every file has an adapter, and every case that runs passes', async function () {
    this.timeout(300_000);
    const outcomes = await runVectors(import.meta.dirname);
    assert.ok(outcomes.length > 0);
    for (const { file, ran, failures, skipped } of outcomes) {
      assert.deepEqual(failures, [], file);
      assert.ok(ran > 0, `${file}: nothing ran (${skipped.map(({ reason }) => reason).join('; ')})`);
    }
  });

  it('judge code that a program contains', function () {
    this.timeout(120_000);
    buildOnce();
    const bundled = bundledFiles();
    for (const name of readdirSync(import.meta.dirname).filter((file) => file.endsWith('.ts'))) {
      const text = readFileSync(join(import.meta.dirname, name), 'utf8');
      const imports = [...text.matchAll(/^(?!import type).*from '\.\.\/\.\.\/([^']+)';$/gm)].map(
        ([, path = '']) => path,
      );
      assert.deepEqual(
        imports.filter((path) => !bundled.has(path)),
        [],
        name,
      );
    }
  });
});
