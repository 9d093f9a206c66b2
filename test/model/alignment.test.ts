import assert from 'node:assert/strict';
import fc from 'fast-check';
import { alignedCpus, annotatedThreadsPerCore, isAligned } from '../../model/alignment.ts';

const cpus = fc.nat(4096);
const threads = fc.integer({ min: 1, max: 16 });

describe('alignment to whole cores', () => {
  for (const [from, threadsPerCore, to] of [
    [9, 2, 10],
    [4, 2, 4],
    [9, 4, 12],
    [9, 8, 16],
    [9, 1, 9],
    [0, 2, 0],
  ] as const) {
    it(`makes ${to} of ${from} CPUs on cores of ${threadsPerCore}`, () => {
      assert.equal(alignedCpus(from, threadsPerCore), to);
    });
  }

  it('is the smallest sufficient multiple, and does not change it again', () => {
    fc.assert(
      fc.property(cpus, threads, (from, threadsPerCore) => {
        const to = alignedCpus(from, threadsPerCore);
        assert.equal(to % threadsPerCore, 0);
        assert.ok(to >= from && to - from < threadsPerCore);
        assert.ok(isAligned(to, threadsPerCore));
      }),
    );
  });

  it('uses an even number with the annotation, or more if a candidate has more threads per core', () => {
    assert.equal(annotatedThreadsPerCore([]), 2);
    assert.equal(annotatedThreadsPerCore([1]), 2);
    assert.equal(annotatedThreadsPerCore([1, 8, 2]), 8);
  });
});
