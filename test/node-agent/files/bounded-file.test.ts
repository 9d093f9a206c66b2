import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { cut, few } from '../../../model/brief.ts';
import {
  FileLimitError,
  readBounded,
  readBoundedAsync,
  readBoundedBytes,
  readHead,
  readRecord,
} from '../../../node-agent/files/bounded-file.ts';
import { tempDirectories } from '../support.ts';

const readers: [string, (path: string, most: number) => Promise<string>][] = [
  ['synchronously', async (path, most) => readBounded(path, most)],
  ['asynchronously', readBoundedAsync],
];

for (const [how, read] of readers) {
  describe(`files that others write, read ${how}`, () => {
    const temp = tempDirectories();
    let path: string;
    beforeEach(() => {
      path = join(temp(), 'file');
    });

    it('whole, up to the limit', async () => {
      for (const size of [0, 1, 4095, 4096, 4097, 100_000]) {
        writeFileSync(path, 'ä'.repeat(size));
        assert.equal(await read(path, size * 2), 'ä'.repeat(size));
        if (size > 0) await assert.rejects(read(path, size * 2 - 1), FileLimitError);
      }
    });

    it('a file that is too large is not read at all: its holes would be gigabytes', async () => {
      execFileSync('truncate', ['-s', '64G', path]);
      const before = process.memoryUsage().rss;
      await assert.rejects(read(path, 1024), { message: `${path}: larger than 1024 bytes` });
      assert.ok(process.memoryUsage().rss - before < 64 * 1024 * 1024);
    });

    it('files of the kernel, which do not say how large they are', async () => {
      assert.equal(await read('/proc/self/comm', 64), readFileSync('/proc/self/comm', 'utf8'));
      assert.equal(await read('/proc/cpuinfo', 2 ** 20), readFileSync('/proc/cpuinfo', 'utf8'));
      await assert.rejects(read('/proc/self/smaps', 100), FileLimitError);
    });

    it('a pipe, a device, a directory: refused, and nothing waits', async () => {
      execFileSync('mkfifo', [path]);
      await assert.rejects(read(path, 1024), /not a regular file/);
      symlinkSync('/dev/zero', `${path}.zero`);
      await assert.rejects(read(`${path}.zero`, 1024), /not a regular file/);
      mkdirSync(`${path}.d`);
      await assert.rejects(read(`${path}.d`, 1024), /not a regular file/);
    });

    it('what is missing is the system’s error', async () => {
      await assert.rejects(read(path, 1024), { code: 'ENOENT' });
    });
  });
}

describe('parts of files', () => {
  const temp = tempDirectories();
  let path: string;
  beforeEach(() => {
    path = join(temp(), 'file');
  });

  it('the beginning, up to the limit', () => {
    writeFileSync(path, '0123456789');
    assert.deepEqual([readHead(path, 4), readHead(path, 10), readHead(path, 11)], ['0123', '0123456789', '0123456789']);
    writeFileSync(path, '');
    assert.equal(readHead(path, 4), '');
  });

  it('the beginning of what the kernel gives out in several reads', () => {
    const whole = readFileSync('/proc/self/smaps', 'utf8');
    assert.ok(whole.length > 16_384);
    assert.equal(readHead('/proc/self/smaps', 16_384).length, 16_384);
  });

  it('one record: 4096 bytes at most, and nothing of the one before', () => {
    writeFileSync(path, 'x'.repeat(5000));
    assert.equal(readRecord(path), 'x'.repeat(4096));
    writeFileSync(path, 'ab');
    assert.equal(readRecord(path), 'ab');
  });

  it('bytes as they are', () => {
    writeFileSync(path, Buffer.from([0, 255, 128]));
    assert.deepEqual([...readBoundedBytes(path, 3)], [0, 255, 128]);
  });

  it('each closes the file, whether it can be read or not', async () => {
    writeFileSync(path, 'x'.repeat(100));
    mkdirSync(`${path}.d`);
    const open = () => readdirSync('/proc/self/fd').length;
    const before = open();
    for (let i = 0; i < 20; i++) {
      readBounded(path, 100);
      assert.throws(() => readBounded(path, 99));
      readHead(path, 10);
      assert.throws(() => readHead(`${path}.d`, 10), { code: 'EISDIR' });
      readRecord(path);
      assert.throws(() => readRecord(`${path}.d`), { code: 'EISDIR' });
      await readBoundedAsync(path, 100);
      await assert.rejects(readBoundedAsync(path, 99));
    }
    assert.ok(open() < before + 15, `${open()} files are open, ${before} before`);
  });
});

describe('texts of others, for people', () => {
  it('cut at a character, with a sign', () => {
    assert.equal(cut('abc', 3), 'abc');
    assert.equal(cut('abcd', 3), 'ab…');
    assert.equal(cut('ab😀d', 4), 'ab…');
  });

  it('the first few, and how many more', () => {
    assert.deepEqual(few(['a', 'bbbb', 'c'], 2, 3), ['a', 'bb…', 'and 1 more']);
    assert.deepEqual(few(['a'], 2, 3), ['a']);
  });
});
