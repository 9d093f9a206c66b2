import assert from 'node:assert/strict';
import { amountText, countText, cpuListText, cpusAre, numaNodesText } from '../../model/amounts.ts';
import { CpuSet } from '../../model/cpu-set.ts';

describe('amounts as text', () => {
  for (const [text, expected] of [
    [countText(1, 'node'), '1 node'],
    [countText(0, 'node'), '0 nodes'],
    [countText(2, 'entry', 'entries'), '2 entries'],
    [cpuListText('3'), 'CPU 3'],
    [cpuListText('3,5'), 'CPUs 3,5'],
    [numaNodesText('1'), 'NUMA node 1'],
    [numaNodesText('0-1'), 'NUMA nodes 0-1'],
    [cpusAre(CpuSet.parse('3')), 'CPU 3 is'],
    [cpusAre(CpuSet.parse('3-5')), 'CPUs 3-5 are'],
    [amountText('cpu', 1.5), '1.5 CPUs'],
    [amountText('cpu', 0.1 + 0.2), '0.3 CPUs'],
    [amountText('memory', 2 ** 32), '4 GiB'],
    [amountText('hugepages-2Mi', 2 ** 21), '2 MiB'],
    [amountText('example.com/vf', 1), '1 device'],
  ] as const) {
    it(expected, () => assert.equal(text, expected));
  }
});
