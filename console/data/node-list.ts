import { type NodeItem, PROBLEM_TEXT } from './node.ts';
import type { NodeProblem } from './wire.ts';

export interface ListQuery<Sort extends string, Filter extends string> {
  readonly text: string;
  readonly sort: Sort;
  readonly descending: boolean;
  readonly filter: Filter;
}

/** Only differences from `usual`, so that most addresses are short. */
export function queryText<S extends string, F extends string>(query: ListQuery<S, F>, usual: ListQuery<S, F>): string {
  const { text, sort, descending, filter } = query;
  const parameters = new URLSearchParams();
  if (text !== '') parameters.set('q', text);
  if (filter !== usual.filter) parameters.set('filter', filter);
  if (sort !== usual.sort || descending !== usual.descending) parameters.set('sort', `${descending ? '-' : ''}${sort}`);
  const written = parameters.toString();
  return written === '' ? '' : `?${written}`;
}

/** The query in an address; unknown values are replaced by those of `usual`. */
export function parseQuery<S extends string, F extends string>(
  text: string,
  usual: ListQuery<S, F>,
  sorts: Readonly<Record<S, unknown>>,
  filters: Readonly<Record<F, unknown>>,
): ListQuery<S, F> {
  const parameters = new URLSearchParams(text);
  const filter = parameters.get('filter') ?? '';
  const order = parameters.get('sort') ?? '';
  const sort = order.replace(/^-/, '');
  return {
    text: (parameters.get('q') ?? '').slice(0, 200),
    filter: Object.hasOwn(filters, filter) ? (filter as F) : usual.filter,
    ...(Object.hasOwn(sorts, sort)
      ? { sort: sort as S, descending: order.startsWith('-') }
      : { sort: usual.sort, descending: usual.descending }),
  };
}

export type NodeSort = keyof typeof NODE_SORTS;
export type NodeFilter = keyof typeof NODE_FILTERS;

export type NodeQuery = ListQuery<NodeSort, NodeFilter>;

export const collator = new Intl.Collator('en', { numeric: true });

export const NODE_SORTS = {
  name: () => 0,
  freeCores: (a: NodeItem, b: NodeItem) => a.freeCores - b.freeCores,
  pods: (a: NodeItem, b: NodeItem) => a.pods - b.pods,
  problems: (a: NodeItem, b: NodeItem) => a.problems.length - b.problems.length,
};

/** In the order of the menu. */
export const NODE_FILTERS = {
  all: { title: 'All nodes', accepts: () => true },
  problems: { title: 'Need attention', accepts: ({ problems }: NodeItem) => problems.length > 0 },
  'in-use': { title: 'With VMs', accepts: ({ pods }: NodeItem) => pods > 0 },
  'in-flight': { title: 'VMs starting', accepts: ({ inFlight }: NodeItem) => inFlight.length > 0 },
  dpu: { title: 'With a DPU', accepts: ({ dpu }: NodeItem) => dpu !== '' },
};

export function nodesByName(nodes: Iterable<NodeItem>): NodeItem[] {
  return [...nodes].sort((a, b) => collator.compare(a.name, b.name));
}

export function findNodes(named: readonly NodeItem[], { text, sort, descending, filter }: NodeQuery): NodeItem[] {
  const matches = matcherOf(text, textsOf);
  const nodes = named.filter((node) => NODE_FILTERS[filter].accepts(node) && matches(node));
  const order = NODE_SORTS[sort];
  if (sort !== 'name') nodes.sort(descending ? (a, b) => order(b, a) : order);
  else if (descending) nodes.reverse();
  return nodes;
}

/** @param textsOf where to look for each word of the search; not called without words */
export function matcherOf<T>(search: string, textsOf: (item: T) => readonly string[]): (item: T) => boolean {
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return () => true;
  return (item) => {
    const texts = textsOf(item).map((text) => text.toLowerCase());
    return words.every((word) => texts.some((text) => text.includes(word)));
  };
}

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

const STALE: readonly NodeProblem[] = ['silent', 'no-node'];

export function totalsOf(nodes: Iterable<NodeItem>) {
  const sum = {
    nodes: 0,
    withProblems: 0,
    cores: 0,
    freeCores: 0,
    /** Free by the last report of a node whose agent is silent, or that the API server no longer has. */
    unknownCores: 0,
    starting: 0,
    dpus: 0,
    dpusReady: 0,
  };
  const problemCounts: Partial<Record<NodeProblem, number>> = {};
  for (const { problems, shape, freeCores, inFlight, dpu } of nodes) {
    sum.nodes++;
    if (problems.length > 0) sum.withProblems++;
    sum.cores += shape?.cores.length ?? 0;
    if (problems.some((problem) => STALE.includes(problem))) sum.unknownCores += freeCores;
    else sum.freeCores += freeCores;
    sum.starting += inFlight.length;
    if (dpu !== '') sum.dpus++;
    if (dpu === 'alive') sum.dpusReady++;
    for (const problem of problems) problemCounts[problem] = (problemCounts[problem] ?? 0) + 1;
  }
  return { ...sum, problemCounts };
}
