import { amountText } from '../model/amounts.ts';
import {
  CORDON,
  filteringTaints,
  matchesValue,
  type SelectingSpec,
  selectsNode,
  toleratesAll,
} from '../model/launcher/node-selection.ts';
import { milliValue, parseQuantity } from '../model/quantity.ts';
import type { ExplainedNode, ExplainedPod, PodAffinityTerm } from './objects.ts';
import { type NodeOpinion, type RefusedOpinion, refusedOn } from './opinions.ts';

/** Taints that the control plane sets on nodes that do not respond. */
const NOT_READY = ['node.kubernetes.io/not-ready', 'node.kubernetes.io/unreachable'];

/** Selectors, cordons, taints. Spread, volumes are not predicted: their messages are in the pod's condition. */
export function schedulerRefusal(pod: { readonly spec: SelectingSpec }, node: ExplainedNode) {
  const { name = '', labels = {} } = node.metadata;
  if (!selectsNode(pod.spec, { name, label: (key) => labels[key] })) {
    const missed = Object.entries(pod.spec.nodeSelector ?? {}).filter(([key, value]) => labels[key] !== value);
    if (missed.length === 0) {
      const detail = 'its labels do not match the required node affinity';
      return refusedOn(name, 'not-selected', 'outside the pod’s node affinity', detail);
    }
    const text = `no label ${missed.map((entry) => entry.join('=')).join(', ')}`;
    return refusedOn(name, 'not-selected', text, `it has ${text}`);
  }
  const taints = filteringTaints(node.spec ?? {}).filter((each) => !toleratesAll(pod.spec.tolerations, [each]));
  if (taints.length === 0) return undefined;
  const isCordoned = taints.some(({ key }) => key === CORDON.key);
  const unready = taints.find(({ key }) => NOT_READY.includes(key));
  // Those that stay after the node was uncordoned and is ready.
  const lasting = taints.filter((taint) => taint.key !== CORDON.key && !NOT_READY.includes(taint.key));
  if (lasting.length > 0) {
    const names = lasting.map(({ key, effect }) => `${key}:${effect}`).join(', ');
    const text = lasting.length === 1 ? `taint ${names} is not tolerated` : `taints ${names} are not tolerated`;
    return refusedOn(name, 'tainted', isCordoned ? `${text}, and cordoned` : text);
  }
  if (unready !== undefined) return refusedOn(name, 'not-ready', 'node is not ready', `taint ${unready.key}`);
  return refusedOn(name, 'cordoned', 'cordoned', `cordoned; kubectl uncordon ${name}`);
}

/** By the requests of its pods; undefined if it has enough. @param others pods that count on the node */
export function shortOf(pod: ExplainedPod, { metadata, status }: ExplainedNode, others: readonly ExplainedPod[]) {
  const allocatable = status?.allocatable ?? {};
  const { name = '' } = metadata;
  for (const [resource, request] of requestsOf(pod)) {
    const there = milli(allocatable[resource] ?? '0');
    const amount = (thousandths: number) => amountText(resource, thousandths / 1000);
    const used = others.reduce((sum, other) => sum + (requestsOf(other).get(resource) ?? 0), 0);
    if (used + request <= there) continue;
    // More than the whole node has. Devices do not count, because another node may have more.
    const isSize = resource === 'cpu' || resource === 'memory' || resource.startsWith('hugepages-');
    if (isSize && request > there) {
      const detail = `${resource}: ${amount(request)} requested, and the node has ${amount(there)} for pods`;
      return refusedOn(name, 'more-than-node', `more ${resource} requested than the node has`, detail);
    }
    const free = `${amount(Math.max(0, there - used))} of ${amount(there)} free`;
    const detail = `${resource}: ${amount(request)} requested, ${free}`;
    return refusedOn(name, 'short-of', `too little ${resource}`, detail);
  }
  return undefined;
}

function requestsOf({ spec }: ExplainedPod): Map<string, number> {
  const sums = new Map<string, number>();
  const add = (requests: Readonly<Record<string, string>> | undefined, combine: (a: number, b: number) => number) => {
    for (const [name, text] of Object.entries(requests ?? {}))
      sums.set(name, combine(sums.get(name) ?? 0, milli(text)));
  };
  const sidecars = (spec.initContainers ?? []).filter(({ restartPolicy }) => restartPolicy === 'Always');
  for (const container of [...spec.containers, ...sidecars]) add(container.resources?.requests, (a, b) => a + b);
  for (const container of spec.initContainers ?? [])
    if (!sidecars.includes(container)) add(container.resources?.requests, Math.max);
  return sums;
}

function milli(text: string): number {
  try {
    return milliValue(parseQuantity(text));
  } catch {
    return 0;
  }
}

/** Uncordoning a node that is also full does not help. */
export function together(refused: RefusedOpinion, opinion: NodeOpinion): RefusedOpinion {
  if (refused.kind !== 'cordoned' || opinion.fits) return refused;
  const also = (reason: string) => `cordoned, and ${reason}`;
  return { ...refused, kind: 'cordoned-and-more', text: also(opinion.text), detail: also(opinion.detail) };
}

/** A required term, and the other pods with a node that it selects; undefined: not readable, or not supported. */
export interface JudgedTerm {
  readonly kind: 'affinity' | 'anti-affinity';
  readonly term: PodAffinityTerm;
  readonly matches: readonly ExplainedPod[] | undefined;
  /** The term selects the pod itself: the first of such a group may go to any node. */
  readonly selectsItself: boolean;
}

/** The required terms of a pod, which kube-scheduler judges by the nodes of other pods. */
export function requiredTerms({ spec }: ExplainedPod): Pick<JudgedTerm, 'kind' | 'term'>[] {
  const { podAffinity, podAntiAffinity } = spec.affinity ?? {};
  const terms = (kind: JudgedTerm['kind'], rules: typeof podAffinity) =>
    (rules?.requiredDuringSchedulingIgnoredDuringExecution ?? []).map((term) => ({ kind, term }));
  return [...terms('affinity', podAffinity), ...terms('anti-affinity', podAntiAffinity)];
}

/** The term's selector for a list call; undefined if it selects in a way that is not supported here. */
export function termSelector({ labelSelector, ...term }: PodAffinityTerm): string | undefined {
  const { namespaceSelector, matchLabelKeys, mismatchLabelKeys } = term;
  if (labelSelector === undefined || namespaceSelector != null) return undefined;
  if (matchLabelKeys.length > 0 || mismatchLabelKeys.length > 0) return undefined;
  const labels = Object.entries(labelSelector.matchLabels ?? {}).map((label) => label.join('='));
  const expressions = labelSelector.matchExpressions.map(({ key, operator, values }) => {
    if (operator === 'Exists') return key;
    if (operator === 'DoesNotExist') return `!${key}`;
    return `${key} ${operator === 'In' ? 'in' : 'notin'} (${values.join(',')})`;
  });
  return [...labels, ...expressions].join(',');
}

const nameOf = ({ metadata }: ExplainedPod) => `${metadata.namespace}/${metadata.name}`;

/** Whether the required anti-affinity of a pod on the node excludes this pod there. Terms by namespace labels are not judged. */
export function excludedBy(pod: ExplainedPod, { metadata }: ExplainedNode, there: readonly ExplainedPod[]) {
  const { name = '', labels = {} } = metadata;
  const excludes = (other: ExplainedPod) =>
    requiredTerms(other).some(
      ({ kind, term }) =>
        kind === 'anti-affinity' && labels[term.topologyKey] !== undefined && selects(term, other, pod),
    );
  const other = there.find((candidate) => candidate.metadata.uid !== pod.metadata.uid && excludes(candidate));
  if (other === undefined) return undefined;
  const detail = `the anti-affinity of ${nameOf(other)}, which runs there, excludes it`;
  return refusedOn(name, 'pod-affinity', 'excluded by the required anti-affinity of a pod there', detail);
}

function selects(term: PodAffinityTerm, owner: ExplainedPod, { metadata }: ExplainedPod): boolean {
  const { labelSelector, namespaces } = term;
  if (labelSelector === undefined || termSelector(term) === undefined) return false;
  const { namespace = '', labels = {} } = metadata;
  const isInNamespace =
    namespaces.length === 0 ? owner.metadata.namespace === namespace : namespaces.includes(namespace);
  const { matchLabels = {}, matchExpressions } = labelSelector;
  return (
    isInNamespace &&
    Object.entries(matchLabels).every(([key, value]) => labels[key] === value) &&
    matchExpressions.every((matchExpression) => matchesValue(matchExpression, labels[matchExpression.key]))
  );
}

/** `undefined` also if it is not known. The anti-affinity of other pods to this one is not judged. */
export function refusedByAffinity(
  terms: readonly JudgedTerm[],
  node: ExplainedNode,
  labelsOf: (node: string) => Readonly<Record<string, string>> | undefined,
): RefusedOpinion | undefined {
  const { name = '', labels = {} } = node.metadata;
  for (const { kind, term, matches, selectsItself } of terms) {
    if (matches === undefined) continue;
    const domain = labels[term.topologyKey];
    const neighbour = matches.find(
      ({ spec }) => domain !== undefined && labelsOf(spec.nodeName ?? '')?.[term.topologyKey] === domain,
    );
    if (kind === 'anti-affinity' && neighbour !== undefined) {
      const detail = `${nameOf(neighbour)} runs there, which its anti-affinity excludes`;
      return refusedOn(name, 'pod-affinity', 'excluded by its required pod anti-affinity', detail);
    }
    const isFirst = matches.length === 0 && selectsItself && domain !== undefined;
    if (kind === 'affinity' && neighbour === undefined && !isFirst) {
      const detail = `no pod that its affinity names runs there (${term.topologyKey})`;
      return refusedOn(name, 'pod-affinity', 'outside its required pod affinity', detail);
    }
  }
  return undefined;
}
