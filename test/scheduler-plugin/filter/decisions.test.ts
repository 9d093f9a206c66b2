import assert from 'node:assert/strict';
import { CpuSet } from '../../../model/cpu-set.ts';
import { Decisions } from '../../../scheduler-plugin/filter/decisions.ts';
import { Refusals } from '../../../scheduler-plugin/filter/refusals.ts';
import { extenderOf, podOf, statusOf, withUid } from '../extender-fixture.ts';

const NODES = 2000;

describe('the recorded decisions', () => {
  const names = Array.from({ length: NODES }, (_, i) => `n${i}`);
  const cluster = () => extenderOf({ nodes: Object.fromEntries(names.map((name) => [name, statusOf()])) });

  it('count the nodes that the pod may use, and name the first ones', () => {
    const { filter, decisions } = cluster();
    assert.equal(filter(podOf('500m'), names).NodeNames.length, NODES);
    const [decision] = decisions.list();
    assert.deepEqual([decision?.offered, decision?.passed, decision?.answered.length], [NODES, NODES, 16]);
    const answered = filter(withUid(podOf('4'), 'vm'), names).NodeNames;
    assert.deepEqual(
      decisions
        .list()
        .at(-1)
        ?.answered.map(({ node }) => node),
      answered,
      'all of them, for a pod with exclusive CPUs',
    );
  });

  it('show the time, the pod, the nodes with their CPUs, and the number of refusals by reason', () => {
    const decisions = new Decisions(() => Date.UTC(2026, 10, 1, 10));
    const refusals = new Refusals();
    for (const [node, text] of Object.entries({ n3: 'few', n4: 'few', n5: 'far' })) {
      refusals.add(node, { kind: 'too-few-cpus', text });
    }
    const answers = [
      { node: 'n1', score: 7, cpus: CpuSet.parse('1-2,9-10') },
      { node: 'n2', score: 0, cpus: undefined },
    ];
    decisions.add(`${'n'.repeat(63)}/${'p'.repeat(300)}`, 'u'.repeat(100), { offered: 5, answers, refusals });
    assert.deepEqual(decisions.list(), [
      {
        time: '2026-11-01T10:00:00.000Z',
        pod: `${'n'.repeat(63)}/${'p'.repeat(253)}`,
        uid: 'u'.repeat(64),
        offered: 5,
        passed: 2,
        answered: [
          { node: 'n1', score: 7, cpus: '1-2,9-10' },
          { node: 'n2', score: 0, cpus: '' },
        ],
        refused: { few: 2, far: 1 },
      },
    ]);
  });
});
