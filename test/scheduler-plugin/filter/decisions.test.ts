import assert from 'node:assert/strict';
import { CpuSet } from '../../../model/cpu-set.ts';
import { Decisions } from '../../../scheduler-plugin/filter/decisions.ts';
import { Refusals } from '../../../scheduler-plugin/filter/refusals.ts';
import { collectGarbage } from '../../support/garbage.ts';
import { extenderOf, podOf, statusOf, withUid } from '../extender-fixture.ts';

const NODES = 2000;
const MEGABYTE = 1000 * 1000;

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

  it('can be listed for one pod, oldest first', () => {
    const { filter, decisions } = extenderOf({ nodes: { n1: statusOf() } });
    for (const [uid, cpu] of [
      ['a', '4'],
      ['b', '2'],
      ['a', '40'],
    ] as const)
      filter(withUid(podOf(cpu), uid));
    const passed = (pod?: string) => decisions.list(pod).map(({ uid, passed }) => [uid, passed]);
    assert.deepEqual(passed('default/a'), [
      ['a', 1],
      ['a', 0],
    ]);
    assert.deepEqual(passed('default/c'), []);
    assert.deepEqual(passed(), [
      ['a', 1],
      ['b', 1],
      ['a', 0],
    ]);
    assert.deepEqual(Object.values(decisions.list('default/a')[1]?.refused ?? {}), [1]);
  });

  it('take little memory for a pod that may use any node', () => {
    const { filter, decisions } = cluster();
    const ask = (from: number, to: number) => {
      for (let i = from; i < to; i++) filter(withUid(podOf('500m'), `p${i}`), names);
      collectGarbage();
      return process.memoryUsage().heapUsed;
    };
    const before = ask(0, 20);
    const after = ask(20, 500);
    assert.equal(decisions.list().length, 500);
    // A name, a score and a place for each of those nodes would be 50 MB or more.
    assert.ok(after - before < 5 * MEGABYTE, `${((after - before) / MEGABYTE).toFixed(1)} MB more`);
  });
});
