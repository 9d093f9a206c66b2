import assert from 'node:assert/strict';
import { createPmdFinder } from '../../../node-agent/ovs-affinity/thread-mover.ts';
import type { Threads } from '../../../node-agent/processes/proc.ts';

describe('the poll mode threads of a switch', () => {
  const machine = () => {
    const names = new Map<number, string>();
    const reads: number[] = [];
    const time = { now: 0 };
    const name = (pid: number, tid: number) => {
      assert.equal(pid, 7);
      reads.push(tid);
      return names.get(tid);
    };
    const find = createPmdFinder(7, { name } as unknown as Threads, () => time.now);
    return { names, reads, time, find: (...tids: number[]) => [...find(tids)] };
  };

  it('are those that OVS names so', () => {
    const { names, find } = machine();
    for (const [tid, name] of [
      [1, 'ovs-vswitchd'],
      [2, 'pmd-c03/id:9'],
      [3, 'pmd-control'],
      [4, 'my-pmd-c1'],
      [5, 'pmd-c11/id:1'],
    ] as const)
      names.set(tid, name);
    assert.deepEqual(find(1, 2, 3, 4, 5, 6), [2, 5]);
  });

  it('are found while a thread is younger than a second, and its name is final then', () => {
    const { names, reads, time, find } = machine();
    names.set(1, 'ovs-vswitchd');
    assert.deepEqual(find(1), []);
    time.now = 999;
    names.set(1, 'pmd-c00/id:1');
    names.set(2, 'ovs-vswitchd');
    assert.deepEqual(find(1, 2), [1]);
    time.now = 1999;
    find(1, 2);
    names.set(2, 'pmd-c01/id:2');
    time.now = 5000;
    assert.deepEqual(find(1, 2), [1]);
    assert.deepEqual(reads, [1, 1, 2, 2], 'a final name is not read again');
  });
});
