import assert from 'node:assert/strict';
import { mock } from 'node:test';
import { CpuSet } from '../../../model/cpu-set.ts';
import type { RefusalKind } from '../../../model/placement/verdict.ts';
import type { PodView } from '../../../scheduler-plugin/cluster/pod-view.ts';
import { DecisionLog, Decisions } from '../../../scheduler-plugin/filter/decisions.ts';
import { Refusals } from '../../../scheduler-plugin/filter/filter.ts';
import { recordingLogger } from '../../support/logger.ts';
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
    const expected = filter(withUid(podOf('4'), 'vm'), names).NodeNames;
    const answered = decisions.list()[1]?.answered.map(({ node }) => node);
    assert.deepEqual(answered, expected, 'all of them, for a pod with exclusive CPUs');
  });

  it('show the time, the pod, the nodes with their CPUs, and the number of refusals by reason', () => {
    mock.timers.enable({ apis: ['Date'], now: Date.UTC(2026, 10, 1, 10) });
    const decisions = new Decisions();
    const refusals = new Refusals();
    for (const [node, text] of Object.entries({ n3: 'few', n4: 'few', n5: 'far' }))
      refusals.add(node, { kind: 'too-few-cpus', text });
    const answers = [
      { node: 'n1', score: 7, cpus: CpuSet.parse('1-2,9-10') },
      { node: 'n2', score: 0, cpus: undefined },
    ];
    decisions.add(`${'n'.repeat(63)}/${'p'.repeat(300)}`, 'u'.repeat(100), { offered: 5, answers, refusals });
    mock.timers.reset();
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
const NONE = 'the extender accepts none of the nodes that kube-scheduler asked about';
type Texts = Parameters<DecisionLog['waits']>[2]['texts'];
describe('the log of decisions', () => {
  const texts = (...list: [Texts[number]['kind'], string, number][]): { texts: Texts } => ({
    texts: list.map(([kind, text, nodes]) => ({ kind, text, nodes })),
  });
  const start = () => {
    const { log, lines } = recordingLogger();
    const decisions = new DecisionLog(log);
    const fieldsOf = ({ msg, pod, vmi, refusals, reasons, node, waitedSeconds }: (typeof lines)[number]) =>
      refusals === undefined ? [msg, pod, node, waitedSeconds] : [msg, pod, vmi, refusals, reasons];
    return { decisions, logged: () => lines.map(fieldsOf) };
  };
  const bound = (name: string, needs: object) =>
    ({ uid: name, namespace: 'ns', name, node: 'n1', needs: { exclusive: false, ...needs } }) as PodView;

  it('has one line for a pod that waits, and another one only for other reasons', () => {
    const { decisions, logged } = start();
    decisions.waits('ns/a', 'a', texts(['dpu', 'DPU not ready: dead, last renewal 2 s ago', 3]));
    decisions.waits('ns/a', 'a', texts(['dpu', 'DPU not ready: dead, last renewal 5 s ago', 2]));
    decisions.waits('ns/b', 'b', texts(['dpu', 'DPU not ready: dead, last renewal 5 s ago', 2]), 'ns/vm');
    decisions.waits(
      'ns/a',
      'a',
      texts(['other', 'too few free CPUs', 4], ['dpu', 'DPU not ready', 1], ['other', 'no report', 2]),
    );
    decisions.waits('ns/a', 'a', texts(['dpu', 'DPU not ready', 1], ['other', 'too few free CPUs', 1]));
    assert.deepEqual(logged(), [
      [NONE, 'ns/a', undefined, { dpu: 3 }, ['DPU not ready: dead, last renewal 2 s ago']],
      [NONE, 'ns/b', 'ns/vm', { dpu: 2 }, ['DPU not ready: dead, last renewal 5 s ago']],
      [NONE, 'ns/a', undefined, { other: 6, dpu: 1 }, ['too few free CPUs', 'DPU not ready', 'no report']],
    ]);
  });

  const PLACED: [string, object, boolean, boolean][] = [
    ['a pod with CPUs of its own', { exclusive: true }, false, true],
    ['a VM with a CPU mask', { mask: {} }, false, true],
    ['an ordinary pod that had to wait', {}, true, true],
  ];
  for (const [label, needs, waited, isLogged] of PLACED)
    it(`${isLogged ? 'has a line' : 'has no line'} for the node of ${label}`, () => {
      const { decisions, logged } = start();
      if (waited) decisions.waits('ns/p', 'p', texts(['dpu', 'DPU not ready', 1]));
      decisions.placed(bound('p', needs));
      assert.deepEqual(
        logged().slice(waited ? 1 : 0),
        isLogged ? [['pod placed', 'ns/p', 'n1', waited ? 0 : undefined]] : [],
      );
    });
});

describe('the refusals of one answer', () => {
  const refusalsOf = (...refused: readonly (readonly [RefusalKind, string])[]) => {
    const refusals = new Refusals();
    refused.forEach(([kind, text], i) => {
      refusals.add(`n${i}`, { kind, text });
    });
    return refusals;
  };
  const counts = ({ texts }: Refusals) => texts.map(({ text, nodes }) => [text, nodes]);

  it('have each text once, with the number of its nodes', () => {
    const refusals = refusalsOf(...['few', 'few', 'many', 'few'].map((text) => ['too-few-cpus', text] as const));
    assert.deepEqual(counts(refusals), [
      ['few', 3],
      ['many', 1],
    ]);
    assert.deepEqual({ ...refusals.byNode }, { n0: 'few', n1: 'few', n2: 'many', n3: 'few' });
  });

  it('count a name that the call has twice once, whatever the name', () => {
    const refusals = new Refusals();
    for (const name of ['n1', '__proto__', 'n1', '__proto__'])
      refusals.add(name, { kind: 'too-few-cpus', text: 'few' });
    assert.deepEqual(counts(refusals), [['few', 2]]);
    assert.equal(JSON.stringify(refusals.byNode), '{"n1":"few","__proto__":"few"}');
  });

  it('have at most eight texts: one is for DPUs and one for all other reasons, so that each node counts', () => {
    const twenty = (kind: RefusalKind, text: (i: number) => string) =>
      Array.from({ length: 20 }, (_, i) => [kind, text(i)] as const);
    const refusals = refusalsOf(
      ...twenty('too-few-cpus', (i) => `${i} CPUs`),
      ...twenty('dpu', (i) => `silent for ${i} s`),
      ...twenty('cpu-mask', (i) => `mask ${i}`),
    );
    assert.deepEqual(counts(refusals), [
      ...Array.from({ length: 6 }, (_, i) => [`${i} CPUs`, 1]),
      ['refused for another reason; see /explain', 34],
      ['DPU not ready for too long', 20],
    ]);
    assert.equal(Object.keys(refusals.byNode).length, 60);
  });
});
