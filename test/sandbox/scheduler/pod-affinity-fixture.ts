import type { JsonRecord } from '../../../sandbox/objects.ts';

/** Three nodes in two zones; the last one has no zone. */
export const LABELS_OF_NODES: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  a1: { 'kubernetes.io/hostname': 'a1', zone: 'a' },
  a2: { 'kubernetes.io/hostname': 'a2', zone: 'a' },
  b1: { 'kubernetes.io/hostname': 'b1', zone: 'b' },
  bare: { 'kubernetes.io/hostname': 'bare' },
};

/** Namespaces and their labels. */
export const LABELS_OF_NAMESPACES: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  default: {},
  other: { team: 'x' },
};

export interface AffinityPod {
  readonly labels: Readonly<Record<string, string>>;
  /** Default: default. */
  readonly namespace?: string;
  readonly near?: readonly JsonRecord[];
  readonly apart?: readonly JsonRecord[];
}

interface AffinityCase {
  readonly title: string;
  /** On a1, unless they name another node. */
  readonly placed: readonly (AffinityPod & { readonly node?: string })[];
  readonly pod: AffinityPod;
  /** The nodes that kube-scheduler refuses, by reason. */
  readonly refused: Readonly<Record<string, readonly string[]>>;
}

const AFFINITY = "node(s) didn't match pod affinity rules";
const ANTI = "node(s) didn't match pod anti-affinity rules";
const EXISTING = "node(s) didn't satisfy existing pods anti-affinity rules";
const HOST = 'kubernetes.io/hostname';
const ALL = ['a1', 'a2', 'b1', 'bare'];
type Labels = Record<string, string>;
const term = (topologyKey: string, matchLabels: Labels, more: JsonRecord = {}): JsonRecord => {
  return { topologyKey, labelSelector: { matchLabels }, ...more };
};
const apart = (labels: Labels, ...terms: JsonRecord[]) => ({ labels, apart: terms });
const near = (labels: Labels, ...terms: JsonRecord[]) => ({ labels, near: terms });
const WEB = { app: 'web' };
const DB = { app: 'db' };
const TIER = { tier: 'x' };
const db = { labels: DB };
const dbOf = (v: string) => ({ ...DB, v });
const webOfTeam = apart(WEB, term(HOST, DB, { namespaceSelector: { matchLabels: { team: 'x' } } }));
const withoutApp = { matchExpressions: [{ key: 'app', operator: 'DoesNotExist' }] };
const twoVersions = [{ labels: dbOf('1') }, { labels: dbOf('2'), node: 'b1' }];
const twoTerms = near(WEB, term(HOST, DB), term('zone', TIER));

const ROWS: readonly [string, AffinityCase['placed'], AffinityPod, AffinityCase['refused']][] = [
  ['anti-affinity by host', [db], apart(WEB, term(HOST, DB)), { [ANTI]: ['a1'] }],
  ['anti-affinity by zone', [db], apart(WEB, term('zone', DB)), { [ANTI]: ['a1', 'a2'] }],
  ['anti-affinity to its own kind', [{ labels: WEB }], apart(WEB, term(HOST, WEB)), { [ANTI]: ['a1'] }],
  [
    'anti-affinity of two terms',
    [db, { labels: WEB, node: 'b1' }],
    apart({}, term(HOST, DB), term(HOST, WEB)),
    { [ANTI]: ['a1', 'b1'] },
  ],
  ['anti-affinity without a selector', [db], apart(WEB, { topologyKey: HOST }), {}],
  [
    'anti-affinity with an expression',
    [db, { labels: {}, node: 'b1' }],
    apart(WEB, { topologyKey: HOST, labelSelector: withoutApp }),
    { [ANTI]: ['b1'] },
  ],
  ['anti-affinity of the other pod', [apart(DB, term(HOST, WEB))], { labels: WEB }, { [EXISTING]: ['a1'] }],
  [
    'anti-affinity of the other pod by zone',
    [apart(DB, term('zone', WEB))],
    { labels: WEB },
    { [EXISTING]: ['a1', 'a2'] },
  ],
  ['affinity by host', [db], near(WEB, term(HOST, DB)), { [AFFINITY]: ['a2', 'b1', 'bare'] }],
  ['affinity by zone', [db], near(WEB, term('zone', DB)), { [AFFINITY]: ['b1', 'bare'] }],
  ['affinity to nothing', [db], near(WEB, term(HOST, { app: 'none' })), { [AFFINITY]: ALL }],
  ['affinity to its own kind, of which it is the first', [db], near(WEB, term(HOST, WEB)), {}],
  ['the first of its kind, on nodes with the topology', [], near(WEB, term('zone', WEB)), { [AFFINITY]: ['bare'] }],
  [
    'affinity to its own kind, of which there is another',
    [{ labels: WEB, node: 'b1' }],
    near(WEB, term(HOST, WEB)),
    { [AFFINITY]: ['a1', 'a2', 'bare'] },
  ],
  [
    'affinity of two terms that one pod satisfies',
    [{ labels: { ...DB, ...TIER } }],
    twoTerms,
    { [AFFINITY]: ['a2', 'b1', 'bare'] },
  ],
  ['affinity of two terms that only two pods satisfy', [db, { labels: TIER }], twoTerms, { [AFFINITY]: ALL }],
  [
    'anti-affinity before that of others',
    [apart(DB, term(HOST, WEB))],
    apart(WEB, term('zone', DB)),
    { [ANTI]: ['a1', 'a2'] },
  ],
  ['another namespace', [{ ...db, namespace: 'other' }], apart(WEB, term(HOST, DB)), {}],
  [
    'another namespace that is named',
    [{ ...db, namespace: 'other' }],
    apart(WEB, term(HOST, DB, { namespaces: ['other'] })),
    { [ANTI]: ['a1'] },
  ],
  ['its own namespace, if only another one is named', [db], apart(WEB, term(HOST, DB, { namespaces: ['other'] })), {}],
  [
    'all namespaces',
    [{ ...db, namespace: 'other' }],
    apart(WEB, term(HOST, DB, { namespaceSelector: {} })),
    { [ANTI]: ['a1'] },
  ],
  ['namespaces by label', [db, { ...db, namespace: 'other', node: 'b1' }], webOfTeam, { [ANTI]: ['b1'] }],
  [
    'label keys that must match',
    twoVersions,
    apart({ ...WEB, v: '1' }, term(HOST, DB, { matchLabelKeys: ['v'] })),
    { [ANTI]: ['a1'] },
  ],
  [
    'label keys that must differ',
    twoVersions,
    apart({ ...WEB, v: '1' }, term(HOST, DB, { mismatchLabelKeys: ['v'] })),
    { [ANTI]: ['b1'] },
  ],
];

export const AFFINITY_CASES = ROWS.map(
  ([title, placed, pod, refused]): AffinityCase => ({ title, placed, pod, refused }),
);

/** The pod's affinity as in its spec. */
export function affinityOf({ near = [], apart = [] }: AffinityPod): JsonRecord {
  return {
    podAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [...near] },
    podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [...apart] },
  };
}
