import assert from 'node:assert/strict';
import { ThreadNames } from '../../../node-agent/processes/thread-names.ts';

describe('the names of threads', () => {
  it('are read until a thread is a second old, and again for another one with its id', () => {
    const comm = new Map([[1, 'ovs-vswitchd']]);
    const reads: number[] = [];
    let now = 0;
    const name = (pid: number, tid: number) => {
      assert.equal(pid, 7);
      reads.push(tid);
      return comm.get(tid);
    };
    const names = new ThreadNames(7, { name }, () => now);
    const read = (...tids: number[]) => [...names.read(tids)].map(([tid, thread]) => `${tid} ${thread.name}`);
    assert.deepEqual(read(1, 3), ['1 ovs-vswitchd'], 'the other one has ended');
    now = 0.999;
    comm.set(1, 'pmd-c00/id:1').set(2, 'ovs-vswitchd');
    assert.deepEqual(read(1, 2), ['1 pmd-c00/id:1', '2 ovs-vswitchd']);
    now = 1.999;
    read(1, 2);
    comm.set(1, 'late').set(2, 'late');
    now = 5;
    reads.length = 0;
    assert.deepEqual([read(1, 2), reads], [['1 pmd-c00/id:1', '2 ovs-vswitchd'], []]);
    read(2);
    assert.deepEqual(read(1, 2), ['1 late', '2 ovs-vswitchd']);
  });
});
