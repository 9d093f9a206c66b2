import assert from 'node:assert/strict';
import { type ExplainedNode, explainedNode, explainedPod } from '../../diagnosis/objects.ts';
import { refusedByAffinity, requiredTerms, schedulerRefusal, termSelector } from '../../diagnosis/scheduler-view.ts';

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

type Kind = 'affinity' | 'anti-affinity';
const ZONES: Readonly<Record<string, string>> = { n1: 'a', n2: 'a', n3: 'b' };
const labelsOf = (name: string) => (name in ZONES ? { zone: ZONES[name]! } : undefined);
const node = (name: string) => explainedNode.parse({ metadata: { name, labels: labelsOf(name) } });
const podOn = (nodeName: string) =>
  explainedPod.parse({
    metadata: { name: `on-${nodeName}`, namespace: 'ns' },
    spec: { nodeName, containers: [{ name: 'c' }] },
  });
const term = (more: object = {}) => ({ labelSelector: { matchLabels: { app: 'x' } }, topologyKey: 'zone', ...more });
const asking = (kind: Kind, own: object) => {
  const rules = { requiredDuringSchedulingIgnoredDuringExecution: [own] };
  const affinity = kind === 'affinity' ? { podAffinity: rules } : { podAntiAffinity: rules };
  return explainedPod.parse({
    metadata: { name: 'p', namespace: 'ns' },
    spec: { containers: [{ name: 'c' }], affinity },
  });
};

describe('the required pod affinity of a waiting pod', () => {
  const rows: readonly [string, Kind, readonly string[] | undefined, boolean, readonly string[]][] = [
    ['refuses every node in the topology of a pod that it excludes', 'anti-affinity', ['n1'], false, ['n1', 'n2']],
    ['refuses no node if no such pod runs', 'anti-affinity', [], false, []],
    ['refuses the nodes without a pod that it names', 'affinity', ['n1'], false, ['n3', 'n4']],
    ['refuses every node if no such pod runs', 'affinity', [], false, ['n1', 'n2', 'n3', 'n4']],
    ['lets the first pod of its own group go to any node with the label', 'affinity', [], true, ['n4']],
    ['judges nothing if the pods cannot be read', 'affinity', undefined, false, []],
  ];
  for (const [title, kind, places, selectsItself, expected] of rows) {
    it(title, () => {
      const [own] = requiredTerms(asking(kind, term()));
      const judged = { ...own!, matches: places?.map(podOn), selectsItself };
      const refused = ['n1', 'n2', 'n3', 'n4'].filter((name) => refusedByAffinity([judged], node(name), labelsOf));
      assert.deepEqual(refused, expected);
    });
  }

  const selectors: readonly [string, object, string | undefined][] = [
    ['labels', {}, 'app=x'],
    [
      'expressions',
      {
        labelSelector: {
          matchExpressions: [
            { key: 'a', operator: 'In', values: ['1', '2'] },
            { key: 'b', operator: 'NotIn', values: ['3'] },
            { key: 'c', operator: 'Exists' },
            { key: 'd', operator: 'DoesNotExist' },
          ],
        },
      },
      'a in (1,2),b notin (3),c,!d',
    ],
    ['a selector of namespaces, which is not judged', { namespaceSelector: {} }, undefined],
    ['keys of labels, which are not judged', { matchLabelKeys: ['pod-template-hash'] }, undefined],
  ];
  for (const [title, more, expected] of selectors) {
    it(`selects pods by ${title}`, () => {
      const [own] = requiredTerms(asking('affinity', term(more)));
      assert.equal(termSelector(own!.term), expected);
    });
  }
});
