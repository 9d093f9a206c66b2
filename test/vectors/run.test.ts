import assert from 'node:assert/strict';
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
});
