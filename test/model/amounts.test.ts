import assert from 'node:assert/strict';
import { amountText, countText, cpuListText, cpusAre, cpusText } from '../../model/amounts.ts';
import { CpuSet } from '../../model/cpu-set.ts';
import { byName } from '../../model/lists.ts';

describe('amounts for people', () => {
  for (const [expected, actual] of [
    ['0 nodes', countText(0, 'node')],
    ['1 node', countText(1, 'node')],
    ['2 agents have', countText(2, 'agent has', 'agents have')],
    ['1 CPU', cpusText(1)],
    ['3 CPUs', cpusText(3)],
    ['CPU 3', cpuListText('3')],
    ['CPUs 3-5,9', cpuListText(CpuSet.parse('3-5,9'))],
    ['CPU 3 is', cpusAre(CpuSet.parse('3'))],
    ['CPUs 3-4 are', cpusAre(CpuSet.parse('3-4'))],
    ['1.5 CPUs', amountText('cpu', 1.5)],
    ['4 GiB', amountText('memory', 4 * 1024 ** 3)],
    ['1.5 MiB', amountText('hugepages-2Mi', 1536 * 1024)],
    ['512 B', amountText('ephemeral-storage', 512)],
    ['1 device', amountText('example.com/vf', 1)],
  ] as const) {
    it(expected, () => assert.equal(actual, expected));
  }
});

describe('the order of names', () => {
  it('puts worker-2 before worker-10, as people do', () => {
    const sorted = ['a', 'worker', 'worker-1.rack-2', 'worker-1.rack-12', 'worker-2', 'worker-10'];
    assert.deepEqual([...sorted].reverse().sort(byName((name) => name)), sorted);
  });
});
