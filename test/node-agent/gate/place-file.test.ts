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
import { contentOf, placeFile, removeFile } from '../../../node-agent/gate/installer.ts';
import { tempDirectories } from '../support.ts';

describe('files of the gate', () => {
  const temp = tempDirectories();
  const modeOf = (path: string) => statSync(path).mode & 0o777;

  it('are written with their mode, in a directory that is created for them', () => {
    const path = join(temp(), 'a/b/gate');
    const before = process.umask(0o077);
    try {
      assert.equal(placeFile(path, Buffer.from('one'), 0o755), true);
      assert.deepEqual([readFileSync(path, 'utf8'), modeOf(path)], ['one', 0o755]);
      process.umask(0);
      const open = join(temp(), 'a/gate');
      placeFile(open, Buffer.from('one'), 0o644);
      assert.equal(modeOf(join(open, '..')), 0o755);
    } finally {
      process.umask(before);
    }
    assert.deepEqual(readdirSync(join(path, '..')), ['gate']);
  });

  it('are not touched if identical, and replaced by a new file if different', () => {
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
    // A process that reads the old file can still read all of it.
    assert.equal(readFileSync(reader, 'utf8'), 'one');
    closeSync(reader);
  });

  it('leave nothing behind if they cannot be written, and report the error', () => {
    const directory = temp();
    mkdirSync(join(directory, 'gate'));
    assert.throws(() => placeFile(join(directory, 'gate'), Buffer.from('one'), 0o600), /EISDIR|EEXIST|ENOTEMPTY/);
    assert.deepEqual(readdirSync(directory), ['gate']);
    // The first error is reported even if there is nothing to clean up.
    assert.throws(
      () => placeFile('/proc/gate', Buffer.from('one'), 0o600),
      (error: NodeJS.ErrnoException) => error.syscall === 'open',
    );
    // The same applies if the file could not be written at all.
    writeFileSync(join(directory, 'file'), '');
    assert.throws(() => placeFile(join(directory, 'file/gate'), Buffer.from('one'), 0o600), /EEXIST|ENOTDIR/);
  });

  it('are removed if they exist', () => {
    const path = join(temp(), 'gate');
    assert.equal(removeFile(path), false);
    writeFileSync(path, '');
    assert.equal(removeFile(path), true);
    assert.equal(existsSync(path), false);
  });

  it('are read up to a limit; a directory or a larger file counts as missing', () => {
    const directory = temp();
    const path = join(directory, 'gate');
    assert.equal(contentOf(path, 10), undefined);
    writeFileSync(path, 'four');
    assert.deepEqual([contentOf(path, 4)?.toString(), contentOf(path, 3)], ['four', undefined]);
    assert.equal(contentOf(directory, 10), undefined);
  });
});
