import assert from 'node:assert/strict';
import { readdir } from 'node:fs/promises';
import { LANES, mergeCounts } from './lanes.ts';

describe('lanes of tests', () => {
  it('contain every file with tests once', async () => {
    const files = (await readdir(import.meta.dirname, { recursive: true })).filter((name) => name.endsWith('.test.ts'));
    const tops = new Set(files.map((name) => name.split('/')[0] ?? ''));
    assert.deepEqual(LANES.flat().toSorted(), [...tops].toSorted());
  });

  it('add up their skipped tests', () => {
    const lines = [
      'skipped 3 tests that need Helm',
      'skipped 1 tests that need QEMU',
      'skipped 4 tests that need Helm',
    ];
    assert.deepEqual(mergeCounts(lines), ['skipped 7 tests that need Helm', 'skipped 1 tests that need QEMU']);
  });
});
