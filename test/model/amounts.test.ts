import assert from 'node:assert/strict';
import fc from 'fast-check';
import { alignedCpus, annotatedThreadsPerCore, isAligned } from '../../model/alignment.ts';
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

describe('alignment to whole cores', () => {
  it('is the smallest sufficient multiple, and does not change it again', () => {
    assert.deepEqual([alignedCpus(9, 2), alignedCpus(9, 8), alignedCpus(0, 2)], [10, 16, 0]);
    fc.assert(
      fc.property(fc.nat(4096), fc.integer({ min: 1, max: 16 }), (from, threadsPerCore) => {
        const to = alignedCpus(from, threadsPerCore);
        assert.equal(to % threadsPerCore, 0);
        assert.ok(to >= from && to - from < threadsPerCore);
        assert.ok(isAligned(to, threadsPerCore));
      }),
    );
  });

  it('uses an even number with the annotation, or more if a candidate has more threads per core', () => {
    assert.deepEqual([annotatedThreadsPerCore([]), annotatedThreadsPerCore([1])], [2, 2]);
    assert.equal(annotatedThreadsPerCore([1, 8, 2]), 8);
  });
});

describe('the order of names', () => {
  it('puts worker-2 before worker-10, as people do', () => {
    const sorted = ['a', 'worker', 'worker-1.rack-2', 'worker-1.rack-12', 'worker-2', 'worker-10'];
    assert.deepEqual([...sorted].reverse().sort(byName((name) => name)), sorted);
  });
});
