import assert from 'node:assert/strict';
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import * as z from 'zod';
import { parseSaved, putAside, SavedFormatError, saveFile } from '../../../node-agent/files/bounded-file.ts';
import { tempDirectories } from '../support.ts';

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
