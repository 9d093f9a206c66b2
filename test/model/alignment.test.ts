import assert from 'node:assert/strict';
import { alignedCpus, annotatedThreadsPerCore, isAligned } from '../../model/alignment.ts';

describe('whole cores', () => {
  for (const [cpus, threadsPerCore, aligned] of [
    [9, 2, 10],
    [10, 2, 10],
    [9, 4, 12],
    [9, 1, 9],
  ] as const) {
    it(`of ${threadsPerCore} threads: ${cpus} CPUs become ${aligned}, and stay so in a second pass`, () => {
      assert.equal(alignedCpus(cpus, threadsPerCore), aligned);
      assert.equal(alignedCpus(aligned, threadsPerCore), aligned);
      assert.equal(isAligned(cpus, threadsPerCore), cpus === aligned);
    });
  }

  it('of an annotated VM are those of the largest cores of the nodes, and never of fewer than two threads', () => {
    assert.equal(annotatedThreadsPerCore([]), 2);
    assert.equal(annotatedThreadsPerCore([1]), 2);
    assert.equal(annotatedThreadsPerCore([2, 8, 4]), 8);
  });
});
