import assert from 'node:assert/strict';
import type { PodView } from '../../../scheduler-plugin/cluster/pod-view.ts';
import { DecisionLog } from '../../../scheduler-plugin/filter/decisions.ts';
import { recordingLogger } from '../../support/logger.ts';

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
  for (const [label, needs, waited, isLogged] of PLACED) {
    it(`${isLogged ? 'has a line' : 'has no line'} for the node of ${label}`, () => {
      const { decisions, logged } = start();
      if (waited) decisions.waits('ns/p', 'p', texts(['dpu', 'DPU not ready', 1]));
      decisions.placed(bound('p', needs));
      assert.deepEqual(
        logged().slice(waited ? 1 : 0),
        isLogged ? [['pod placed', 'ns/p', 'n1', waited ? 0 : undefined]] : [],
      );
    });
  }
});
