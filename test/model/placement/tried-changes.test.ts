import assert from 'node:assert/strict';
import { type TriedChanges, tryChanges } from '../../../model/placement/tried-changes.ts';
import { judgeHost } from '../../../model/placement/verdict.ts';
import { needs, node, physnet } from './fixture.ts';

const owned = (podUID: string, cpus: string) => ({ podUID, container: 'compute', cpus });

describe('changes tried against the prediction', () => {
  const cases: readonly [string, TriedChanges, TriedChanges][] = [
    [
      'a full node, were it empty',
      tryChanges(needs('a', 4, [], { wholeCores: true }), node({ assignments: [owned('x', '2-15')] })),
      { emptied: true, padded: undefined, preferred: undefined, fewerCpus: undefined },
    ],
    [
      'an odd VM that did not opt in, on a node of whole cores: free CPUs do not help, padding does',
      tryChanges(needs('a', 3), node()),
      { emptied: false, padded: true, preferred: undefined, fewerCpus: undefined },
    ],
    [
      'a VM of 82 CPUs, where pods can have 14',
      tryChanges(needs('a', 82, [], { wholeCores: true }), node()),
      { emptied: false, padded: undefined, preferred: undefined, fewerCpus: 68 },
    ],
    [
      'a VM whose network is full, elsewhere',
      tryChanges(needs('a', 4, [physnet('east')], { wholeCores: true }), node({ assignments: [owned('x', '2-7')] })),
      { emptied: true, padded: undefined, preferred: true, fewerCpus: undefined },
    ],
  ];
  for (const [title, actual, expected] of cases) it(title, () => assert.deepEqual(actual, expected));

  it('the number of CPUs is the smallest: it fits with it, and not with one core more', () => {
    for (const cpus of [16, 30, 82, 100]) {
      const { fewerCpus = 0 } = tryChanges(needs('a', cpus, [], { wholeCores: true }), node());
      const fits = (less: number) =>
        judgeHost(needs('a', cpus - less, [], { wholeCores: true }), node(), [], 'refuse').fits;
      assert.deepEqual([fits(fewerCpus), fits(fewerCpus - 2)], [true, false], `${cpus}`);
    }
  });
});
