import assert from 'node:assert/strict';
import { mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { watchDirectory } from '../../../node-agent/files/watch-directory.ts';
import { eventually, replaceFile, tempDirectories } from '../support.ts';

describe('watching a directory', () => {
  const temp = tempDirectories();
  let seen: (string | undefined)[];
  let stop: AbortController;
  beforeEach(() => {
    seen = [];
    stop = new AbortController();
  });
  afterEach(() => stop.abort());
  const watch = (path: string) => watchDirectory({ path, signal: stop.signal, onChange: (name) => seen.push(name) });
  const sees = async (name: string | undefined, change: () => void) => {
    seen.length = 0;
    change();
    await eventually(() => seen.includes(name), `a change of ${name} after ${change}; seen ${seen}`);
  };

  it('reports at the start that anything may have changed', () => {
    watch(temp());
    assert.deepEqual(seen, [undefined]);
  });

  it('reports a file that is created, filled, emptied, replaced repeatedly and removed', async () => {
    const path = temp();
    const file = join(path, 'f');
    watch(path);
    await sees('f', () => writeFileSync(file, ''));
    await sees('f', () => writeFileSync(file, '1'));
    await sees('f', () => writeFileSync(file, ''));
    for (let i = 0; i < 3; i++) await sees('f', () => replaceFile(file, String(i)));
    await sees('f', () => rmSync(file));
  });

  it('reports a directory that is created later, removed, and created again', async () => {
    const path = join(temp(), 'later');
    watch(path);
    assert.deepEqual(seen, []);
    await sees(undefined, () => mkdirSync(path));
    await sees('f', () => writeFileSync(join(path, 'f'), '1'));
    await sees(undefined, () => rmSync(path, { recursive: true }));
    await sees(undefined, () => mkdirSync(path));
    await sees('g', () => writeFileSync(join(path, 'g'), '1'));
  });

  it('reports a directory that is replaced by another', async () => {
    const path = join(temp(), 'd');
    mkdirSync(path);
    mkdirSync(`${path}2`);
    watch(path);
    await sees(undefined, () => {
      renameSync(path, `${path}1`);
      renameSync(`${path}2`, path);
    });
    await eventually(
      () => {
        writeFileSync(join(path, 'f'), String(Math.random()));
        return seen.includes('f');
      },
      'the new one is watched',
      8,
    );
  });

  it('reports nothing after the signal', async () => {
    const path = temp();
    watch(path);
    stop.abort();
    seen.length = 0;
    writeFileSync(join(path, 'f'), '1');
    await new Promise((resolve) => setTimeout(resolve, 50));
    assert.deepEqual(seen, []);
  });
});
