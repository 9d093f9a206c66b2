import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync } from 'node:fs';
import { join } from 'node:path';
import { endsWithUs } from '../support/children.ts';
import { type Copy, createCopy } from './copy.ts';
import { createPlayer } from './player.ts';

describe('a copy of the project for a mutation run', function () {
  this.timeout(120_000);
  let copy: Copy;
  before(() => {
    copy = createCopy();
  });
  after(() => copy.remove());

  it('ends a program that was built in it and left its process group', async () => {
    const program = join(copy.temporary, 'endless');
    copyFileSync('/bin/sleep', program);
    const left = spawn(program, ['600'], { detached: true, stdio: 'ignore' });
    endsWithUs(left);
    const ended = once(left, 'exit');
    await once(left, 'spawn');
    createPlayer(copy).end();
    assert.deepEqual(await ended, [null, 'SIGKILL']);
  });

  it('ends a daemon that one of its tests started, and no other process', async () => {
    const start = (temporary: string) => {
      const env = { ...process.env, TMPDIR: temporary };
      const child = spawn('/bin/sleep', ['600'], { detached: true, stdio: 'ignore', env });
      endsWithUs(child);
      return child;
    };
    const [daemon, other] = [start(copy.temporary), start(`${copy.temporary}/other`)];
    const ended = once(daemon, 'exit');
    await Promise.all([daemon, other].map((one) => once(one, 'spawn')));
    createPlayer(copy).end();
    assert.deepEqual(await ended, [null, 'SIGKILL']);
    assert.deepEqual([other.exitCode, other.signalCode], [null, null]);
  });
});
