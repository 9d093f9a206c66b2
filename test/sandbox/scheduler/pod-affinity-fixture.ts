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

export interface AffinityCase {
  readonly title: string;
  /** On a1, unless they name another node. */
  readonly placed: readonly (AffinityPod & { readonly node?: string })[];
  readonly pod: AffinityPod;
  /** The nodes that kube-scheduler refuses, by reason. */
  readonly refused: Readonly<Record<string, readonly string[]>>;
}

const AFFINITY = "node(s) didn't match pod affinity rules";
const ANTI_AFFINITY = "node(s) didn't match pod anti-affinity rules";
const EXISTING = "node(s) didn't satisfy existing pods anti-affinity rules";
const HOST = 'kubernetes.io/hostname';
const term = (topologyKey: string, matchLabels: Record<string, string>, more: JsonRecord = {}): JsonRecord => {
  return { topologyKey, labelSelector: { matchLabels }, ...more };
};
const WEB = { app: 'web' };
const DB = { app: 'db' };

export const AFFINITY_CASES: readonly AffinityCase[] = [
  {
    title: 'anti-affinity by host',
    placed: [{ labels: DB }],
    pod: { labels: WEB, apart: [term(HOST, DB)] },
    refused: { [ANTI_AFFINITY]: ['a1'] },
  },
  {
    title: 'anti-affinity by zone',
    placed: [{ labels: DB }],
    pod: { labels: WEB, apart: [term('zone', DB)] },
    refused: { [ANTI_AFFINITY]: ['a1', 'a2'] },
  },
  {
    title: 'anti-affinity to its own kind',
    placed: [{ labels: WEB }],
    pod: { labels: WEB, apart: [term(HOST, WEB)] },
    refused: { [ANTI_AFFINITY]: ['a1'] },
  },
  {
    title: 'anti-affinity of two terms',
    placed: [{ labels: DB }, { labels: WEB, node: 'b1' }],
    pod: { labels: {}, apart: [term(HOST, DB), term(HOST, WEB)] },
    refused: { [ANTI_AFFINITY]: ['a1', 'b1'] },
  },
  {
    title: 'anti-affinity without a selector',
    placed: [{ labels: DB }],
    pod: { labels: WEB, apart: [{ topologyKey: HOST }] },
    refused: {},
  },
  {
    title: 'anti-affinity with an expression',
    placed: [{ labels: DB }, { labels: {}, node: 'b1' }],
    pod: {
      labels: WEB,
      apart: [{ topologyKey: HOST, labelSelector: { matchExpressions: [{ key: 'app', operator: 'DoesNotExist' }] } }],
    },
    refused: { [ANTI_AFFINITY]: ['b1'] },
  },
  {
    title: 'anti-affinity of the other pod',
    placed: [{ labels: DB, apart: [term(HOST, WEB)] }],
    pod: { labels: WEB },
    refused: { [EXISTING]: ['a1'] },
  },
  {
    title: 'anti-affinity of the other pod by zone',
    placed: [{ labels: DB, apart: [term('zone', WEB)] }],
    pod: { labels: WEB },
    refused: { [EXISTING]: ['a1', 'a2'] },
  },
  {
    title: 'affinity by host',
    placed: [{ labels: DB }],
    pod: { labels: WEB, near: [term(HOST, DB)] },
    refused: { [AFFINITY]: ['a2', 'b1', 'bare'] },
  },
  {
    title: 'affinity by zone',
    placed: [{ labels: DB }],
    pod: { labels: WEB, near: [term('zone', DB)] },
    refused: { [AFFINITY]: ['b1', 'bare'] },
  },
  {
    title: 'affinity to nothing',
    placed: [{ labels: DB }],
    pod: { labels: WEB, near: [term(HOST, { app: 'none' })] },
    refused: { [AFFINITY]: ['a1', 'a2', 'b1', 'bare'] },
  },
  {
    title: 'affinity to its own kind, of which it is the first',
    placed: [{ labels: DB }],
    pod: { labels: WEB, near: [term(HOST, WEB)] },
    refused: {},
  },
  {
    title: 'the first of its kind, on nodes with the topology',
    placed: [],
    pod: { labels: WEB, near: [term('zone', WEB)] },
    refused: { [AFFINITY]: ['bare'] },
  },
  {
    title: 'affinity to its own kind, of which there is another',
    placed: [{ labels: WEB, node: 'b1' }],
    pod: { labels: WEB, near: [term(HOST, WEB)] },
    refused: { [AFFINITY]: ['a1', 'a2', 'bare'] },
  },
  {
    title: 'affinity of two terms that one pod satisfies',
    placed: [{ labels: { ...DB, tier: 'x' } }],
    pod: { labels: WEB, near: [term(HOST, DB), term('zone', { tier: 'x' })] },
    refused: { [AFFINITY]: ['a2', 'b1', 'bare'] },
  },
  {
    title: 'affinity of two terms that only two pods satisfy',
    placed: [{ labels: DB }, { labels: { tier: 'x' } }],
    pod: { labels: WEB, near: [term(HOST, DB), term('zone', { tier: 'x' })] },
    refused: { [AFFINITY]: ['a1', 'a2', 'b1', 'bare'] },
  },
  {
    title: 'anti-affinity before that of others',
    placed: [{ labels: DB, apart: [term(HOST, WEB)] }],
    pod: { labels: WEB, apart: [term('zone', DB)] },
    refused: { [ANTI_AFFINITY]: ['a1', 'a2'] },
  },
  {
    title: 'another namespace',
    placed: [{ labels: DB, namespace: 'other' }],
    pod: { labels: WEB, apart: [term(HOST, DB)] },
    refused: {},
  },
  {
    title: 'another namespace that is named',
    placed: [{ labels: DB, namespace: 'other' }],
    pod: { labels: WEB, apart: [term(HOST, DB, { namespaces: ['other'] })] },
    refused: { [ANTI_AFFINITY]: ['a1'] },
  },
  {
    title: 'its own namespace, if only another one is named',
    placed: [{ labels: DB }],
    pod: { labels: WEB, apart: [term(HOST, DB, { namespaces: ['other'] })] },
    refused: {},
  },
  {
    title: 'all namespaces',
    placed: [{ labels: DB, namespace: 'other' }],
    pod: { labels: WEB, apart: [term(HOST, DB, { namespaceSelector: {} })] },
    refused: { [ANTI_AFFINITY]: ['a1'] },
  },
  {
    title: 'namespaces by label',
    placed: [{ labels: DB }, { labels: DB, namespace: 'other', node: 'b1' }],
    pod: { labels: WEB, apart: [term(HOST, DB, { namespaceSelector: { matchLabels: { team: 'x' } } })] },
    refused: { [ANTI_AFFINITY]: ['b1'] },
  },
  {
    title: 'label keys that must match',
    placed: [{ labels: { ...DB, v: '1' } }, { labels: { ...DB, v: '2' }, node: 'b1' }],
    pod: { labels: { ...WEB, v: '1' }, apart: [term(HOST, DB, { matchLabelKeys: ['v'] })] },
    refused: { [ANTI_AFFINITY]: ['a1'] },
  },
  {
    title: 'label keys that must differ',
    placed: [{ labels: { ...DB, v: '1' } }, { labels: { ...DB, v: '2' }, node: 'b1' }],
    pod: { labels: { ...WEB, v: '1' }, apart: [term(HOST, DB, { mismatchLabelKeys: ['v'] })] },
    refused: { [ANTI_AFFINITY]: ['b1'] },
  },
];

/** The pod's affinity as in its spec. */
export function affinityOf({ near = [], apart = [] }: AffinityPod): JsonRecord {
  return {
    podAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [...near] },
    podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [...apart] },
  };
}
