import { isAligned } from '../alignment.ts';
import { FULL_PCPUS_LABEL, THREADS_PER_CORE_LABEL } from '../names.ts';
import type { NodeKind } from './node-kind.ts';
import { type NodeRequirement, type NodeTerm, requiredTerms, type SelectingSpec } from './node-selection.ts';

export interface SmtAffinityRequest {
  /** CPUs of each container with exclusive CPUs, as they end up. */
  readonly cpus: readonly number[];
  /** The kinds of nodes that the pod can go to. */
  readonly candidates: readonly NodeKind[];
  /** The kinds of all nodes that have reported. */
  readonly reported: readonly NodeKind[];
}

/**
 * The node affinity that follows from a pod's CPUs: away from full-pcpus-only nodes whose cores have a number of threads
 * that its CPUs are no multiple of, as their kubelets would reject it. Such nodes are dropped by kube-scheduler's own
 * filter then, which looks at labels and stops early on large clusters, before anybody has asked the extender.
 *
 * The answer is two requirements of which one must hold, or undefined where none follows: where no reported node is
 * hopeless, and where every candidate is, since then the extender's refusal names the reason and a label would hide it.
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
 * The terms of a required node affinity with one more condition: that one of two requirements holds. Terms are
 * alternatives, so each becomes two. A term that has either of them already is left alone, which makes a second pass
 * change nothing.
 */
export function withAlternatives(
  terms: readonly NodeTerm[] | undefined,
  alternatives: readonly NodeRequirement[],
): readonly NodeTerm[] {
  if (terms === undefined) return alternatives.map((one) => ({ matchExpressions: [one] }));
  return terms.flatMap((term) => {
    const has = (term.matchExpressions ?? []).some((one) => alternatives.some((other) => isSame(one, other)));
    // A term without requirements matches nothing; with one more it would match something.
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
 * The spec without such requirements: what the pod could go to before they were put in. Asking with it makes every pass
 * over a pod see the same candidates.
 */
export function beforeSmtAffinity(spec: SelectingSpec): SelectingSpec {
  const terms = requiredTerms(spec);
  if (terms === undefined || !terms.some((term) => term.matchExpressions?.some(isOwn))) return spec;
  const { nodeSelector } = spec;
  const before = terms.map((term) => ({
    ...term,
    matchExpressions: (term.matchExpressions ?? []).filter((one) => !isOwn(one)),
  }));
  // A term of ours alone stood for "anywhere"; one that was empty before goes on to match nothing.
  const free = before.some((term, i) => isEmpty(term) && !isEmpty(terms[i]!));
  if (free) return { nodeSelector };
  return {
    nodeSelector,
    affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: before } } },
  };
}

function isOwn({ key, operator }: NodeRequirement): boolean {
  return operator === 'NotIn' && (key === THREADS_PER_CORE_LABEL || key === FULL_PCPUS_LABEL);
}
