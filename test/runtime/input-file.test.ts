import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { readInput } from '../../runtime/input-file.ts';
import { tempDirectories } from '../support/files.ts';

describe('files that a user names', () => {
  const temp = tempDirectories();
  let path: string;
  before(() => {
    path = join(temp(), 'file');
  });

  it('are read whole up to the limit', () => {
    for (const size of [0, 1, 65_535, 65_536, 65_537, 200_000]) {
      writeFileSync(path, 'x'.repeat(size));
      assert.equal(readInput(path, size).toString(), 'x'.repeat(size));
      if (size > 0) assert.throws(() => readInput(path, size - 1), { message: `it is larger than ${size - 1} bytes` });
    }
  });

  it('take memory of the order of their size, from a pipe that returns one byte at a time', async () => {
    spawnSync('mkfifo', [`${path}.pipe`]);
    const bytes = 20_000;
    const script = `const { openSync, writeSync } = require('node:fs'); const to = openSync(process.argv[1], 'w');
      for (let i = 0; i < ${bytes}; i++) { writeSync(to, 'x'); Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, i % 50 === 0 ? 1 : 0); }`;
    const writer = spawn(process.execPath, ['-e', script, `${path}.pipe`], { stdio: 'ignore' });
    const before = process.memoryUsage().arrayBuffers;
    const read = readInput(`${path}.pipe`, bytes);
    const after = process.memoryUsage().arrayBuffers;
    await new Promise((resolve) => writer.once('exit', resolve));
    assert.equal(read.length, bytes);
    assert.ok(after - before < 1024 * 1024, `${after - before} bytes`);
  });
});
