import { matchesValue } from '../model/launcher/node-selection.ts';
import type { ExplainedNode, ExplainedPod, PodAffinityTerm } from './objects.ts';
import type { RefusedOpinion } from './opinions.ts';

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
  const near = podAffinity?.requiredDuringSchedulingIgnoredDuringExecution ?? [];
  const apart = podAntiAffinity?.requiredDuringSchedulingIgnoredDuringExecution ?? [];
  return [
    ...near.map((term) => ({ kind: 'affinity' as const, term })),
    ...apart.map((term) => ({ kind: 'anti-affinity' as const, term })),
  ];
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

/** Whether the required anti-affinity of a pod on the node excludes this pod there. Terms by namespace labels are not judged. */
export function excludedBy(
  pod: ExplainedPod,
  node: ExplainedNode,
  there: readonly ExplainedPod[],
): RefusedOpinion | undefined {
  const { name = '', labels = {} } = node.metadata;
  const excludes = (other: ExplainedPod) =>
    requiredTerms(other).some(
      ({ kind, term }) =>
        kind === 'anti-affinity' && labels[term.topologyKey] !== undefined && selects(term, other, pod),
    );
  const other = there.find((candidate) => candidate.metadata.uid !== pod.metadata.uid && excludes(candidate));
  if (other === undefined) return undefined;
  const text = 'excluded by the required anti-affinity of a pod there';
  const detail = `the anti-affinity of ${other.metadata.namespace}/${other.metadata.name}, which runs there, excludes it`;
  return { node: name, fits: false, kind: 'pod-affinity', text, detail };
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
  for (const { kind, term, matches, selectsItself } of terms) {
    if (matches === undefined) continue;
    const { name = '', labels = {} } = node.metadata;
    const domain = labels[term.topologyKey];
    const neighbours = matches.filter(
      ({ spec }) => domain !== undefined && labelsOf(spec.nodeName ?? '')?.[term.topologyKey] === domain,
    );
    const [first] = neighbours;
    const refuse = (text: string, detail: string): RefusedOpinion => {
      return { node: name, fits: false, kind: 'pod-affinity', text, detail };
    };
    if (kind === 'anti-affinity' && first !== undefined) {
      const other = `${first.metadata.namespace}/${first.metadata.name}`;
      return refuse(
        'excluded by its required pod anti-affinity',
        `${other} runs there, which its anti-affinity excludes`,
      );
    }
    const isFirst = matches.length === 0 && selectsItself && domain !== undefined;
    if (kind === 'affinity' && first === undefined && !isFirst) {
      return refuse(
        'outside its required pod affinity',
        `no pod that its affinity names runs there (${term.topologyKey})`,
      );
    }
  }
  return undefined;
}
