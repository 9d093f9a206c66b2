import { type NodeItem, PROBLEM_TEXT } from './node.ts';

/** Search, filter and order of a list. */
export interface ListQuery<Sort extends string, Filter extends string> {
  /** Words; an item must match all of them. */
  readonly text: string;
  readonly sort: Sort;
  readonly descending: boolean;
  readonly filter: Filter;
}

/**
 * The parameters of a query in the address. They only contain differences from `usual`, so that most addresses are
 * short.
 */
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
  sorts: readonly S[],
  filters: readonly F[],
): ListQuery<S, F> {
  const parameters = new URLSearchParams(text);
  const wanted = parameters.get('sort') ?? '';
  const sort = sorts.find((one) => one === wanted.replace(/^-/, ''));
  return {
    text: (parameters.get('q') ?? '').slice(0, 200),
    filter: filters.find((one) => one === parameters.get('filter')) ?? usual.filter,
    ...(sort === undefined
      ? { sort: usual.sort, descending: usual.descending }
      : { sort, descending: wanted.startsWith('-') }),
  };
}

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

/** The cluster in a few numbers. */
export function totalsOf(nodes: Iterable<NodeItem>) {
  const sum = { nodes: 0, withProblems: 0, cores: 0, freeCores: 0, pods: 0, inFlight: 0, dpus: 0, dpusDead: 0 };
  for (const { problems, shape, freeCores, pods, inFlight, dpu } of nodes) {
    sum.nodes++;
    if (problems.length > 0) sum.withProblems++;
    sum.cores += shape?.cores.length ?? 0;
    sum.freeCores += freeCores;
    sum.pods += pods;
    sum.inFlight += inFlight.length;
    if (dpu !== '') sum.dpus++;
    if (problems.includes('dpu-dead')) sum.dpusDead++;
  }
  return sum;
}
