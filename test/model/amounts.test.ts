import assert from 'node:assert/strict';
import { amountText, countText, cpuListText, cpusAre, cpusText } from '../../model/amounts.ts';
import { CpuSet } from '../../model/cpu-set.ts';

describe('amounts for people', () => {
  for (const [actual, expected] of [
    [countText(0, 'node'), '0 nodes'],
    [countText(1, 'node'), '1 node'],
    [countText(2, 'agent has', 'agents have'), '2 agents have'],
    [cpusText(1), '1 CPU'],
    [cpusText(3), '3 CPUs'],
    [cpuListText('3'), 'CPU 3'],
    [cpuListText(CpuSet.parse('3-5,9')), 'CPUs 3-5,9'],
    [cpusAre(CpuSet.parse('3')), 'CPU 3 is'],
    [cpusAre(CpuSet.parse('3-4')), 'CPUs 3-4 are'],
    [amountText('cpu', 1.5), '1.5 CPUs'],
    [amountText('cpu', 1), '1 CPU'],
    [amountText('memory', 4 * 1024 ** 3), '4 GiB'],
    [amountText('hugepages-2Mi', 1536 * 1024), '1.5 MiB'],
    [amountText('ephemeral-storage', 512), '512 B'],
    [amountText('example.com/vf', 1), '1 device'],
    [amountText('example.com/vf', 2), '2 devices'],
  ] as const) {
    it(expected, () => assert.equal(actual, expected));
  }
});
