import assert from 'node:assert/strict';
import {
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { contentOf, placeFile, removeFile } from '../../../node-agent/gate/place-file.ts';
import { tempDirectories } from '../support.ts';

describe('files of the gate', () => {
  const temp = tempDirectories();
  const modeOf = (path: string) => statSync(path).mode & 0o777;

  it('put in place with their mode, in a directory that is made for them', () => {
    const path = join(temp(), 'a/b/gate');
    assert.equal(placeFile(path, Buffer.from('one'), 0o755), true);
    assert.deepEqual([readFileSync(path, 'utf8'), modeOf(path)], ['one', 0o755]);
    assert.equal(modeOf(join(path, '../..')) & 0o700, 0o700);
    const before = process.umask(0);
    try {
      const open = join(temp(), 'a/gate');
      placeFile(open, Buffer.from('one'), 0o644);
      assert.equal(modeOf(join(open, '..')), 0o755);
    } finally {
      process.umask(before);
    }
    assert.deepEqual(readdirSync(join(path, '..')), ['gate']);
  });

  it('one that is the same is left alone; another is replaced, by another file', () => {
    const path = join(temp(), 'gate');
    placeFile(path, Buffer.from('one'), 0o600);
    const { ino } = statSync(path);
    assert.equal(placeFile(path, Buffer.from('one'), 0o600), false);
    assert.equal(statSync(path).ino, ino);
    const reader = openSync(path, 'r');
    for (const text of ['two', 'longer than before', 'x', '']) {
      assert.equal(placeFile(path, Buffer.from(text), 0o600), true);
      assert.equal(readFileSync(path, 'utf8'), text);
    }
    // Who was reading it still has the whole of the old one.
    assert.equal(readFileSync(reader, 'utf8'), 'one');
    closeSync(reader);
  });

  it('whatever the mask of the process is', () => {
    const before = process.umask(0o077);
    try {
      const path = join(temp(), 'gate');
      placeFile(path, Buffer.from('one'), 0o755);
      assert.equal(modeOf(path), 0o755);
    } finally {
      process.umask(before);
    }
  });

  it('a file that cannot be put in place leaves nothing behind, and says so', () => {
    const directory = temp();
    mkdirSync(join(directory, 'gate'));
    assert.throws(() => placeFile(join(directory, 'gate'), Buffer.from('one'), 0o600), /EISDIR|EEXIST|ENOTEMPTY/);
    assert.deepEqual(readdirSync(directory), ['gate']);
    // Where there is nothing to be taken away, the reason is still the first one.
    assert.throws(
      () => placeFile('/proc/gate', Buffer.from('one'), 0o600),
      (error: NodeJS.ErrnoException) => error.syscall === 'open',
    );
    // Nor where it could not even be written.
    writeFileSync(join(directory, 'file'), '');
    assert.throws(() => placeFile(join(directory, 'file/gate'), Buffer.from('one'), 0o600), /EEXIST|ENOTDIR/);
  });

  it('removed where they are there', () => {
    const path = join(temp(), 'gate');
    assert.equal(removeFile(path), false);
    writeFileSync(path, '');
    assert.equal(removeFile(path), true);
    assert.equal(existsSync(path), false);
  });

  it('read up to a limit; what is no file, or larger, is none', () => {
    const directory = temp();
    const path = join(directory, 'gate');
    assert.equal(contentOf(path, 10), undefined);
    writeFileSync(path, 'four');
    assert.deepEqual([contentOf(path, 4)?.toString(), contentOf(path, 3)], ['four', undefined]);
    assert.equal(contentOf(directory, 10), undefined);
  });
});
