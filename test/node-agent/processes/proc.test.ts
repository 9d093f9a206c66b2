import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  commandLineOf,
  commOf,
  createProcThreads,
  parentOf,
  procThreads,
  startOf,
} from '../../../node-agent/processes/proc.ts';
import { eventually, tempDirectories } from '../support.ts';

describe('processes with names of their own choice', () => {
  const temp = tempDirectories();
  const children: ChildProcess[] = [];
  afterEach(() => {
    for (const child of children.splice(0)) child.kill('SIGKILL');
  });

  /** A process with the given name and the given number of characters in its arguments. */
  const start = async (name: string, length = 10): Promise<number> => {
    const ready = join(temp(), 'ready');
    const script = `require('fs').writeFileSync('/proc/self/comm', process.argv[1]); require('fs').writeFileSync(${JSON.stringify(ready)}, ''); setInterval(() => {}, 1000)`;
    const env = Object.fromEntries(Object.entries(process.env).filter(([key]) => key !== 'NODE_OPTIONS'));
    const child = spawn(process.execPath, ['-e', script, name, 'x'.repeat(length)], { env });
    children.push(child);
    await eventually(() => existsSync(ready), 'the child runs');
    return child.pid ?? 0;
  };

  for (const name of ['a) R 1 (b', 'ovs-vswitchd ', 'q\nTgid:\t1', ') ) ) (', '\n']) {
    it(`${JSON.stringify(name)}: name, parent and start are read correctly`, async () => {
      const pid = await start(name);
      assert.equal(commOf(pid), name.slice(0, 15));
      assert.equal(procThreads.name(pid, pid), name.slice(0, 15));
      assert.equal(parentOf(pid), process.pid);
      const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(' ');
      assert.equal(startOf(pid), Number(fields.at(-31)));
    });
  }

  it('a command line of 100 kB is read up to a limit', async () => {
    const pid = await start('long', 100_000);
    const text = commandLineOf(pid) ?? '';
    assert.ok(text.startsWith(process.execPath) && text.length <= 2048, `${text.length} characters`);
  });

  it('the first threads of a process with too many are listed, with its main thread', () => {
    const all = procThreads.list(process.pid);
    assert.ok(all.length > 4);
    const few = createProcThreads(3).list(process.pid);
    assert.deepEqual(few, all.slice(0, 3));
    assert.equal(few[0], process.pid);
    assert.deepEqual(createProcThreads(all.length + 10).list(process.pid).length, all.length);
  });

  it('a thread of another process does not belong to this one', async () => {
    const pid = await start('other');
    assert.deepEqual([procThreads.has(process.pid, process.pid), procThreads.has(process.pid, pid)], [true, false]);
    assert.equal(procThreads.has(pid, 1), false);
  });
});
