import { isAligned } from '../alignment.ts';
import { FULL_PCPUS_LABEL, THREADS_PER_CORE_LABEL } from '../names.ts';
import type { NodeReach } from '../networks/reach.ts';
import { type NodeRequirement, type NodeTerm, requiredTerms, type SelectingSpec } from './node-selection.ts';

/**
 * Excludes full-pcpus-only nodes with threads per core that do not divide the pod's CPUs: kube-scheduler then drops
 * them before it calls the extender. One of the two requirements must match. Undefined if no reporting node would
 * reject the pod, or if every candidate would: the extender's refusal then names the reason.
 */
export function smtAffinity(
  cpus: readonly number[],
  candidates: readonly NodeKind[],
  reported: readonly NodeKind[],
): readonly NodeRequirement[] | undefined {
  const hopeless = ({ fullPcpusOnly, threadsPerCore }: NodeKind) =>
    fullPcpusOnly && cpus.some((count) => !isAligned(count, threadsPerCore));
  const threads = [...new Set(reported.filter(hopeless).map(({ threadsPerCore }) => threadsPerCore))];
  if (threads.length === 0 || candidates.every(hopeless)) return undefined;
  return [
    { key: THREADS_PER_CORE_LABEL, operator: 'NotIn', values: threads.sort((a, b) => a - b).map(String) },
    { key: FULL_PCPUS_LABEL, operator: 'NotIn', values: ['true'] },
  ];
}

/** Terms are alternatives, so each becomes two. Terms that have one of the requirements already stay unchanged. */
export function withAlternatives(
  terms: readonly NodeTerm[] | undefined,
  alternatives: readonly NodeRequirement[],
): readonly NodeTerm[] {
  if (terms === undefined) return alternatives.map((alternative) => ({ matchExpressions: [alternative] }));
  return terms.flatMap((term) => {
    const expressions = term.matchExpressions ?? [];
    const has = expressions.some((expression) => alternatives.some((other) => isSame(expression, other)));
    // A term without requirements matches nothing; with an additional one it could match.
    if (has || isEmpty(term)) return [term];
    return alternatives.map((alternative) => ({ ...term, matchExpressions: [...expressions, alternative] }));
  });
}

function isEmpty({ matchExpressions, matchFields }: NodeTerm): boolean {
  return (matchExpressions ?? []).length + (matchFields ?? []).length === 0;
}

function isSame(a: NodeRequirement, b: NodeRequirement): boolean {
  return a.key === b.key && a.operator === b.operator && (a.values ?? []).join() === (b.values ?? []).join();
}

/**
 * The spec as it was before they were added, so that every pass has the same candidates. A user's own requirement on
 * these labels stays: Plumbline's always come in pairs of terms without other differences.
 */
export function beforeSmtAffinity(spec: SelectingSpec): SelectingSpec {
  const terms = requiredTerms(spec);
  if (terms === undefined) return spec;
  const originalTerms = originalTermsOf(terms);
  const before = terms.map((term) => originalTerms.get(term) ?? term);
  if (before.every((term, i) => term === terms[i])) return spec;
  const { nodeSelector, tolerations } = spec;
  // A single term of Plumbline's stood for "any node"; a term that was empty before still matches nothing.
  const free = before.some((term, i) => isEmpty(term) && !isEmpty(terms[i]!));
  if (free) return { nodeSelector, tolerations };
  const nodeAffinity = { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: before } };
  return { nodeSelector, tolerations, affinity: { nodeAffinity } };
}

/** Each as it was before: another term differs only in that it has the other alternative. */
function originalTermsOf(terms: readonly NodeTerm[]): ReadonlyMap<NodeTerm, NodeTerm> {
  const smtTerms = terms.flatMap((term) => {
    const all = term.matchExpressions ?? [];
    return all.flatMap((requirement, at) => {
      const rest = { ...term, matchExpressions: all.toSpliced(at, 1) };
      return isSmtRequirement(requirement) ? [{ term, rest, key: requirement.key, text: termText(rest) }] : [];
    });
  });
  const keys = new Map<string, Set<string>>();
  for (const { text, key } of smtTerms) keys.set(text, (keys.get(text) ?? new Set()).add(key));
  const before = new Map<NodeTerm, NodeTerm>();
  for (const { term, rest, text } of smtTerms.reverse()) if (keys.get(text)?.size === 2) before.set(term, rest);
  return before;
}

function termText({ matchExpressions, matchFields }: NodeTerm): string {
  const plain = (list: NodeTerm['matchFields']) =>
    (list ?? []).map(({ key, operator, values }) => [key, operator, values ?? []]);
  return JSON.stringify([plain(matchExpressions), plain(matchFields)]);
}

function isSmtRequirement({ key, operator, values }: NodeRequirement): boolean {
  if (operator !== 'NotIn') return false;
  return key === THREADS_PER_CORE_LABEL || (key === FULL_PCPUS_LABEL && (values ?? []).join() === 'true');
}

/** Nodes of the same model have the same kind. */
export interface NodeKind extends NodeReach {
  /** As in its kubelet: CPUs divided by cores. */
  readonly threadsPerCore: number;
  readonly fullPcpusOnly: boolean;
}

/** Ascending; 1 where the kubelet assigns threads. Empty if no node has a report. */
export function askedMultiples(kinds: readonly NodeKind[]): readonly number[] {
  const asking = kinds.filter(({ fullPcpusOnly }) => fullPcpusOnly).map(({ threadsPerCore }) => threadsPerCore);
  if (asking.length === 0) return kinds.length === 0 ? [] : [1];
  return [...new Set(asking)].sort((a, b) => a - b);
}
