import assert from 'node:assert/strict';
import fs, { mkdirSync, rmSync, type Stats, utimesSync, writeFileSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { join } from 'node:path';
import { mock } from 'node:test';
import { createParsedFiles } from '../../../node-agent/files/parsed-file.ts';
import { replaceFile, tempDirectories } from '../support.ts';

describe('a file that is parsed again only after a change', () => {
  const temp = tempDirectories();
  let file: string;
  let parsed: string[];
  /** Seconds by which the clock of the reader is ahead, so that no change counts as recent. */
  let ahead: number;
  const read = () =>
    createParsedFiles(
      (_file, text) => {
        parsed.push(text);
        if (text === 'faulty') throw new Error('faulty');
        return { text };
      },
      100,
      () => Date.now() + ahead * 1000,
    );

  beforeEach(() => {
    file = join(temp(), 'f');
    parsed = [];
    ahead = 10;
    writeFileSync(file, 'one');
  });

  it('unchanged: parsed once', async () => {
    const reader = read();
    const first = await reader(file);
    assert.equal(await reader(file), first);
    assert.deepEqual(parsed, ['one']);
  });

  const changes: [string, () => void][] = [
    ['written in place', () => writeFileSync(file, 'two!')],
    ['replaced', () => replaceFile(file, 'two')],
    [
      'replaced, with the size and the time of the former',
      () => {
        replaceFile(file, 'two');
        utimesSync(file, 1, 1);
      },
    ],
  ];
  for (const [name, change] of changes) {
    it(`${name}: parsed again`, async () => {
      const reader = read();
      utimesSync(file, 1, 1);
      await reader(file);
      change();
      assert.match(((await reader(file)) as { text: string }).text, /^two/);
    });
  }

  for (const field of ['ino', 'dev', 'size', 'mtimeMs', 'ctimeMs'] as const) {
    it(`with another ${field} and all else equal: parsed again`, async () => {
      const reader = read();
      await reader(file);
      const { statSync } = fs;
      const stat = mock.method(fs, 'statSync', (path: string, options: { throwIfNoEntry: false }) => {
        const stats = statSync(path, options) as Stats;
        stats[field] -= 1;
        return stats;
      });
      syncBuiltinESMExports();
      try {
        await reader(file);
        assert.equal(parsed.length, 2);
        await reader(file);
        assert.equal(parsed.length, 2, 'unchanged since');
      } finally {
        stat.mock.restore();
        syncBuiltinESMExports();
      }
    });
  }

  it('changed just before it was read: parsed again, since a second change could have the same time', async () => {
    ahead = 0;
    const reader = read();
    await reader(file);
    await reader(file);
    assert.deepEqual(parsed, ['one', 'one']);
  });

  it('removed, too large, no file, faulty: an error each time, and the next good content counts', async () => {
    const reader = read();
    await reader(file);
    rmSync(file);
    await assert.rejects(reader(file), { code: 'ENOENT' });
    mkdirSync(file);
    await assert.rejects(reader(file), /not a regular file/);
    rmSync(file, { recursive: true });
    for (let i = 0; i < 2; i++) {
      writeFileSync(file, 'x'.repeat(101));
      await assert.rejects(reader(file), /larger than 100 bytes/);
      writeFileSync(file, 'faulty');
      await assert.rejects(reader(file), /faulty/);
    }
    writeFileSync(file, 'three');
    assert.deepEqual(await reader(file), { text: 'three' });
  });
});
