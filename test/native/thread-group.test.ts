import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { join } from 'node:path';
import { isThreadOf, threadsOfProcess } from '../../native/peer.ts';
import { skipWithout } from '../support/parts.ts';

const MODULE = join(import.meta.dirname, '../../native/peer.ts');

describe('threads of a process', () => {
  it('are all threads in /proc, and no others', () => {
    const own = threadsOfProcess(process.pid);
    assert.ok(own.length > 4 && own.every((tid) => isThreadOf(process.pid, tid)), own.join());
    assert.deepEqual([isThreadOf(process.pid, process.ppid), isThreadOf(process.ppid, process.pid)], [false, false]);
    // A thread id is not a pid.
    assert.equal(isThreadOf(own.at(-1)!, process.pid), false);
  });

  it('are none for invalid ids: 0 would be the caller’s own group', () => {
    for (const id of [0, -1, 2 ** 22 + 1])
      assert.deepEqual([isThreadOf(id, id), isThreadOf(process.pid, id)], [false, false]);
  });

  it('of another user are found without the permission to send signals, which the agent does not have', async function () {
    skipWithout('root', this);
    const other = spawn('sleep', ['60'], { uid: 65534 });
    const program = `import { isThreadOf } from ${JSON.stringify(MODULE)};
      let refused = 'sent';
      try { process.kill(${other.pid}, 0); } catch (error) { refused = error.code; }
      console.log(refused, isThreadOf(${other.pid}, ${other.pid}), isThreadOf(${other.pid}, process.pid));`;
    const node = [process.execPath, '--import', 'tsx', '--input-type=module', '-e', program];
    const text = execFileSync('setpriv', ['--bounding-set=-kill', ...node], { encoding: 'utf8' });
    other.kill('SIGKILL');
    assert.equal(text.trim(), 'EPERM true false');
  });
});
