import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import * as z from 'zod';
import {
  FileLimitError,
  parseSaved,
  putAside,
  readBounded,
  readHead,
  SavedFormatError,
  saveFile,
} from '../../../node-agent/files/bounded-file.ts';
import { tempDirectories } from '../support.ts';

describe('files from other programs', () => {
  const temp = tempDirectories();
  let path: string;
  beforeEach(() => {
    path = join(temp(), 'file');
  });

  it('are read whole up to the limit', () => {
    for (const size of [0, 1, 4095, 4096, 4097, 100_000]) {
      writeFileSync(path, 'ä'.repeat(size));
      assert.equal(readBounded(path, size * 2), 'ä'.repeat(size));
      if (size > 0) assert.throws(() => readBounded(path, size * 2 - 1), FileLimitError);
    }
  });

  it('are not read at all if too large, even if sparse', () => {
    execFileSync('truncate', ['-s', '64G', path]);
    const before = process.memoryUsage().rss;
    assert.throws(() => readBounded(path, 1024), { message: `${path}: larger than 1024 bytes` });
    assert.ok(process.memoryUsage().rss - before < 64 * 1024 * 1024);
  });

  it('are read from the kernel, which reports no size', () => {
    assert.equal(readBounded('/proc/self/comm', 64), readFileSync('/proc/self/comm', 'utf8'));
    assert.equal(readBounded('/proc/cpuinfo', 2 ** 20), readFileSync('/proc/cpuinfo', 'utf8'));
    assert.throws(() => readBounded('/proc/self/smaps', 100), FileLimitError);
  });

  it('are refused without blocking if they are a pipe, a device or a directory', () => {
    execFileSync('mkfifo', [path]);
    assert.throws(() => readBounded(path, 1024), /not a regular file/);
    symlinkSync('/dev/zero', `${path}.zero`);
    assert.throws(() => readBounded(`${path}.zero`, 1024), /not a regular file/);
    mkdirSync(`${path}.d`);
    assert.throws(() => readBounded(`${path}.d`, 1024), /not a regular file/);
  });

  it('cause the error of the system if missing', () => {
    assert.throws(() => readBounded(path, 1024), { code: 'ENOENT' });
  });

  it('give their head up to a limit', () => {
    writeFileSync(path, '0123456789');
    assert.deepEqual([readHead(path, 4), readHead(path, 11)], ['0123', '0123456789']);
  });
});

describe('a file of the agent', () => {
  const temp = tempDirectories();

  it('is written below directories that do not exist, for its owner alone, and replaced in one step', () => {
    const directory = join(temp(), 'a/b');
    const path = join(directory, 'state.json');
    saveFile(path, 'old');
    const { ino } = statSync(path);
    saveFile(path, 'new');
    const after = statSync(path);
    assert.deepEqual([readFileSync(path, 'utf8'), after.mode & 0o777], ['new', 0o600]);
    assert.notEqual(after.ino, ino, 'another file took its place');
    assert.deepEqual(readdirSync(directory), ['state.json']);
  });

  it('has its mode with any umask', () => {
    const before = process.umask(0o077);
    try {
      const path = join(temp(), 'a/plugin');
      saveFile(path, 'x', { mode: 0o755 });
      assert.equal(statSync(path).mode & 0o777, 0o755);
    } finally {
      process.umask(before);
    }
  });

  it('leaves nothing behind if it cannot be written', () => {
    const directory = temp();
    mkdirSync(join(directory, 'state.json'));
    assert.throws(() => saveFile(join(directory, 'state.json'), 'x'), /EISDIR|EEXIST|ENOTEMPTY/);
    assert.deepEqual(readdirSync(directory), ['state.json']);
  });

  it('is read in format 1, which is the default, with unknown fields', () => {
    const schema = z.object({ a: z.number() });
    for (const text of ['{"a":1}', '{"a":1,"format":1,"more":true}'])
      assert.deepEqual(parseSaved(text, schema), { a: 1 });
    assert.throws(
      () => parseSaved('{"a":1,"format":2}', schema),
      (error) => error instanceof SavedFormatError && /has format 2, this agent reads format 1/.test(error.message),
    );
    for (const text of ['{', '{"format":1}', '7']) assert.throws(() => parseSaved(text, schema), text);
  });

  it('is kept under another name if it is unusable', () => {
    const directory = temp();
    const path = join(directory, 'state.json');
    writeFileSync(path, '{');
    assert.equal(putAside(path), `${path}.corrupt`);
    assert.deepEqual([readdirSync(directory), readFileSync(`${path}.corrupt`, 'utf8')], [['state.json.corrupt'], '{']);
    assert.equal(putAside(path), undefined, 'there is none');
    mkdirSync(join(directory, 'folder.corrupt/full'), { recursive: true });
    mkdirSync(join(directory, 'folder'));
    assert.equal(putAside(join(directory, 'folder')), undefined, 'it cannot be moved');
  });
});
