import { type NodeItem, PROBLEM_TEXT } from './node.ts';
import type { ListQuery } from './query-text.ts';

export type NodeSort = 'name' | 'freeCores' | 'pods' | 'problems';
export type NodeFilter = 'all' | 'problems' | 'dpu' | 'in-use' | 'in-flight';

export type NodeQuery = ListQuery<NodeSort, NodeFilter>;

const collator = new Intl.Collator('en', { numeric: true });

const ORDERS: Readonly<Record<NodeSort, (a: NodeItem, b: NodeItem) => number>> = {
  name: () => 0,
  freeCores: (a, b) => a.freeCores - b.freeCores,
  pods: (a, b) => a.pods - b.pods,
  problems: (a, b) => a.problems.length - b.problems.length,
};

const PASSES: Readonly<Record<NodeFilter, (node: NodeItem) => boolean>> = {
  all: () => true,
  problems: ({ problems }) => problems.length > 0,
  dpu: ({ dpu }) => dpu !== '',
  'in-use': ({ pods }) => pods > 0,
  'in-flight': ({ inFlight }) => inFlight.length > 0,
};

/** Nodes by name in natural order: worker-9 before worker-10. */
export function byName(nodes: Iterable<NodeItem>): NodeItem[] {
  return [...nodes].sort((a, b) => collator.compare(a.name, b.name));
}

/** The nodes that match a query, in its order. `named` are all nodes, by name. */
export function findNodes(named: readonly NodeItem[], { text, sort, descending, filter }: NodeQuery): NodeItem[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const passes = PASSES[filter];
  const found = named.filter((node) => passes(node) && hasAll(node, words));
  if (sort !== 'name') found.sort(descending ? (a, b) => ORDERS[sort](b, a) : ORDERS[sort]);
  else if (descending) found.reverse();
  return found;
}

function hasAll(node: NodeItem, words: readonly string[]): boolean {
  return words.every((word) => textsOf(node).some((text) => text.toLowerCase().includes(word)));
}

/** All texts that a search matches: the node's name, networks, VMs and problems. */
function textsOf({ name, shape, owners, inFlight, problems, dpu }: NodeItem): string[] {
  return [
    name,
    ...owners.map(([pod]) => pod),
    ...inFlight.map(([pod]) => pod),
    ...(shape?.content.physnets.map(([physnet]) => physnet) ?? []),
    ...(shape?.content.tunnel === undefined ? [] : ['tunnel']),
    ...problems.map((problem) => PROBLEM_TEXT[problem].short),
    ...(dpu === '' ? [] : ['dpu']),
  ];
}
