import assert from 'node:assert/strict';
import { readdir } from 'node:fs/promises';
import { LANES } from './lanes.ts';

describe('lanes of tests', () => {
  it('contain every file with tests once', async () => {
    const files = (await readdir(import.meta.dirname, { recursive: true })).filter((name) => name.endsWith('.test.ts'));
    const tops = new Set(files.map((name) => (name.split('/')[0] ?? '').replace('.test.ts', '')));
    assert.deepEqual(LANES.flat().toSorted(), [...tops].toSorted());
  });
});
