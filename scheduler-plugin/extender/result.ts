import type { FilterOutcome } from '../filter/filter.ts';
import type { NodeObject } from './args.ts';

/** The answer to a filter call. Source: k8s.io/kube-scheduler/extender/v1/types.go. */
export interface ExtenderFilterResult {
  readonly Nodes: { readonly metadata: object; readonly items: readonly NodeObject[] } | null;
  readonly NodeNames: readonly string[] | null;
  readonly FailedNodes: Readonly<Record<string, string>> | null;
  readonly FailedAndUnresolvableNodes: Readonly<Record<string, string>> | null;
  readonly Error: string;
}

/**
 * All refusals are in FailedAndUnresolvableNodes: preemption cannot help (docs/adr/0022).
 *
 * @param nodes the objects of a scheduler that sent whole nodes, and expects whole nodes
 */
export function filterResult(
  { answers, refusals }: FilterOutcome,
  nodes: readonly NodeObject[] | undefined,
): ExtenderFilterResult {
  const names = answers.map(({ node }) => node);
  const passed = new Set(names);
  return {
    Nodes:
      nodes === undefined ? null : { metadata: {}, items: nodes.filter(({ metadata }) => passed.has(metadata.name)) },
    NodeNames: names,
    FailedNodes: {},
    FailedAndUnresolvableNodes: refusals.byNode,
    Error: '',
  };
}

/** The scheduler treats this as a failure of the extender: it retries the pod with backoff, on no node. */
export function filterError(message: string): ExtenderFilterResult {
  return { Nodes: null, NodeNames: null, FailedNodes: null, FailedAndUnresolvableNodes: null, Error: message };
}
