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
});
