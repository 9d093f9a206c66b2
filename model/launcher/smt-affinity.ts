import { isAligned } from '../alignment.ts';
import { FULL_PCPUS_LABEL, THREADS_PER_CORE_LABEL } from '../names.ts';
import type { NodeReach } from '../networks/reach.ts';
import { type NodeRequirement, type NodeTerm, requiredTerms, type SelectingSpec } from './node-selection.ts';

export interface SmtAffinityRequest {
  /** Final CPUs of each container with exclusive CPUs. */
  readonly cpus: readonly number[];
  /** The kinds of nodes that the pod can run on. */
  readonly candidates: readonly NodeKind[];
  readonly reported: readonly NodeKind[];
}

/**
 * The node affinity that follows from a pod's CPUs: it excludes full-pcpus-only nodes with a number of threads per core
 * that does not divide the CPUs, because their kubelets would reject the pod. kube-scheduler's own filter, which checks
 * labels and stops early on large clusters, then drops such nodes before it calls the extender.
 *
 * Returns two requirements of which one must match. Undefined if no reporting node would reject the pod, or if every
 * candidate would: the extender's refusal then names the reason, which a label would hide.
 */
export function smtAffinity({
  cpus,
  candidates,
  reported,
}: SmtAffinityRequest): readonly NodeRequirement[] | undefined {
  const hopeless = ({ fullPcpusOnly, threadsPerCore }: NodeKind) =>
    fullPcpusOnly && cpus.some((count) => !isAligned(count, threadsPerCore));
  const threads = [...new Set(reported.filter(hopeless).map(({ threadsPerCore }) => threadsPerCore))];
  if (threads.length === 0 || candidates.every(hopeless)) return undefined;
  return [
    { key: THREADS_PER_CORE_LABEL, operator: 'NotIn', values: threads.sort((a, b) => a - b).map(String) },
    { key: FULL_PCPUS_LABEL, operator: 'NotIn', values: ['true'] },
  ];
}

/**
 * The terms of a required node affinity with an additional condition: one of two requirements must match. Terms are
 * alternatives, so each becomes two. Terms that have one of the requirements already stay unchanged, so a second pass
 * changes nothing.
 */
export function withAlternatives(
  terms: readonly NodeTerm[] | undefined,
  alternatives: readonly NodeRequirement[],
): readonly NodeTerm[] {
  if (terms === undefined) return alternatives.map((one) => ({ matchExpressions: [one] }));
  return terms.flatMap((term) => {
    const has = (term.matchExpressions ?? []).some((one) => alternatives.some((other) => isSame(one, other)));
    // A term without requirements matches nothing; with an additional one it could match.
    if (has || isEmpty(term)) return [term];
    return alternatives.map((one) => ({ ...term, matchExpressions: [...(term.matchExpressions ?? []), one] }));
  });
}

function isEmpty({ matchExpressions, matchFields }: NodeTerm): boolean {
  return (matchExpressions ?? []).length + (matchFields ?? []).length === 0;
}

function isSame(a: NodeRequirement, b: NodeRequirement): boolean {
  return a.key === b.key && a.operator === b.operator && (a.values ?? []).join() === (b.values ?? []).join();
}

/**
 * The spec without such requirements, as it was before they were added. With it every pass over a pod has the same
 * candidates. A user's own requirement on these labels stays: Plumbline's always come in pairs of terms without other
 * differences.
 */
export function beforeSmtAffinity(spec: SelectingSpec): SelectingSpec {
  const terms = requiredTerms(spec);
  if (terms === undefined) return spec;
  const own = ownRequirements(terms);
  const before = terms.map((term) => own.get(term) ?? term);
  if (before.every((term, i) => term === terms[i])) return spec;
  const { nodeSelector, tolerations } = spec;
  // A single term of Plumbline's stood for "any node"; a term that was empty before still matches nothing.
  const free = before.some((term, i) => isEmpty(term) && !isEmpty(terms[i]!));
  if (free) return { nodeSelector, tolerations };
  return {
    nodeSelector,
    tolerations,
    affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: before } } },
  };
}

/**
 * The terms with one of the alternatives, each as it was before that was added: another term differs only in that it
 * has the other alternative. Each text is made once, because a pod may have many such terms.
 */
function ownRequirements(terms: readonly NodeTerm[]): ReadonlyMap<NodeTerm, NodeTerm> {
  const own = terms.flatMap((term) => {
    const all = term.matchExpressions ?? [];
    return all.flatMap((requirement, at) => {
      const rest = { ...term, matchExpressions: without(all, at) };
      return isOwn(requirement) ? [{ term, rest, key: requirement.key, text: termText(rest) }] : [];
    });
  });
  const keys = new Map<string, Set<string>>();
  for (const { text, key } of own) keys.set(text, (keys.get(text) ?? new Set()).add(key));
  const before = new Map<NodeTerm, NodeTerm>();
  for (const { term, rest, text } of own.reverse()) if (keys.get(text)?.size === 2) before.set(term, rest);
  return before;
}

function without(all: readonly NodeRequirement[], at: number): NodeRequirement[] {
  return all.filter((_, i) => i !== at);
}

function termText({ matchExpressions, matchFields }: NodeTerm): string {
  const plain = (list: readonly NodeRequirement[] | null | undefined) =>
    (list ?? []).map(({ key, operator, values }) => [key, operator, values ?? []]);
  return JSON.stringify([plain(matchExpressions), plain(matchFields)]);
}

function isOwn({ key, operator, values }: NodeRequirement): boolean {
  if (operator !== 'NotIn') return false;
  return key === THREADS_PER_CORE_LABEL || (key === FULL_PCPUS_LABEL && (values ?? []).join() === 'true');
}

/** Properties of a node that matter before a pod is placed. Nodes of the same model have the same kind. */
export interface NodeKind extends NodeReach {
  /** CPUs divided by cores, as in its kubelet. */
  readonly threadsPerCore: number;
  /** Whether its kubelet assigns whole cores only. */
  readonly fullPcpusOnly: boolean;
}

/**
 * Multiples of CPUs that some of the nodes require, ascending: threads per core if the kubelet assigns whole cores
 * only. If no kubelet requires whole cores, the result is 1. Empty if no node has a report.
 */
export function askedMultiples(kinds: readonly NodeKind[]): readonly number[] {
  const asking = kinds.filter(({ fullPcpusOnly }) => fullPcpusOnly).map(({ threadsPerCore }) => threadsPerCore);
  if (asking.length === 0) return kinds.length === 0 ? [] : [1];
  return [...new Set(asking)].sort((a, b) => a - b);
}
