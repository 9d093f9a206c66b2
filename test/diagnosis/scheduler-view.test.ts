import assert from 'node:assert/strict';
import type { ExplainedNode } from '../../diagnosis/objects.ts';
import { schedulerRefusal } from '../../diagnosis/scheduler-view.ts';

const NO_SCHEDULE = 'NoSchedule';
const CORDON = { key: 'node.kubernetes.io/unschedulable', effect: NO_SCHEDULE };
const UNREADY = { key: 'node.kubernetes.io/not-ready', effect: NO_SCHEDULE };
const GPU = { key: 'example.com/gpu', effect: NO_SCHEDULE };
const OURS = { key: 'example.com/ours', effect: 'NoExecute' };

describe('why kube-scheduler refuses a node', () => {
  type Node = Pick<ExplainedNode, 'metadata' | 'spec' | 'status'>;
  const refusal = (spec: object, labels: Readonly<Record<string, string>> = {}, selector = {}) => {
    const node = { metadata: { name: 'n', labels }, spec, status: undefined } as unknown as Node;
    const refused = schedulerRefusal({ spec: { nodeSelector: selector } }, node as ExplainedNode);
    return refused && [refused.kind, refused.text];
  };
  const taints = (...all: readonly object[]) => ({ taints: all });
  const cases: readonly (readonly [string, ReturnType<typeof refusal>, readonly string[] | undefined])[] = [
    ['nothing', refusal({}), undefined],
    ['a taint', refusal(taints(GPU)), ['tainted', 'taint example.com/gpu:NoSchedule is not tolerated']],
    [
      'every taint that would stay',
      refusal(taints(GPU, OURS)),
      ['tainted', 'taints example.com/gpu:NoSchedule, example.com/ours:NoExecute are not tolerated'],
    ],
    [
      'a cordon does not hide a taint',
      refusal(taints(CORDON, GPU)),
      ['tainted', 'taint example.com/gpu:NoSchedule is not tolerated, and cordoned'],
    ],
    ['a node that is not ready, and cordoned', refusal(taints(CORDON, UNREADY)), ['not-ready', 'node is not ready']],
    ['a cordon', refusal(taints(CORDON)), ['cordoned', 'cordoned']],
    ['every label', refusal({}, { a: '1' }, { a: '2', b: '3' }), ['not-selected', 'no label a=2, b=3']],
    ['only those that it lacks', refusal({}, { a: '2' }, { a: '2', b: '3' }), ['not-selected', 'no label b=3']],
  ];
  for (const [title, actual, expected] of cases) it(title, () => assert.deepEqual(actual, expected));
});
