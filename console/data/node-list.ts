import { byName } from '../../model/lists.ts';
import type { ListKind } from './list.ts';
import { type NodeItem, PROBLEM_TEXT } from './node.ts';
import type { NodeProblem } from './wire.ts';

export type NodeFilter = 'all' | 'problems' | 'in-use' | 'in-flight' | 'dpu';

const byNode = byName<NodeItem>(({ name }) => name);

export const nodesByName = (nodes: Iterable<NodeItem>): NodeItem[] => [...nodes].sort(byNode);

/** Of nodes in the order of their names. */
export const NODE_LIST: ListKind<NodeItem, 'name' | 'freeCores' | 'pods' | 'problems', NodeFilter> = {
  sorts: {
    name: byNode,
    freeCores: (a, b) => a.freeCores - b.freeCores,
    pods: (a, b) => a.pods - b.pods,
    problems: (a, b) => a.problems.length - b.problems.length,
  },
  filters: {
    all: { title: 'All nodes', accepts: () => true },
    problems: { title: 'Need attention', accepts: ({ problems }) => problems.length > 0 },
    'in-use': { title: 'With VMs', accepts: ({ pods }) => pods > 0 },
    'in-flight': { title: 'VMs starting', accepts: ({ inFlight }) => inFlight.length > 0 },
    dpu: { title: 'With a DPU', accepts: ({ dpu }) => dpu !== '' },
  },
  usual: { text: '', sort: 'problems', descending: true, filter: 'all' },
  textsOf: ({ name, shape, owners, inFlight, problems, dpu }) => [
    name,
    ...owners.map(([pod]) => pod),
    ...inFlight.map(([pod]) => pod),
    ...(shape?.content.physnets.map(([physnet]) => physnet) ?? []),
    ...(shape?.content.tunnel === undefined ? [] : ['tunnel']),
    ...problems.map((problem) => PROBLEM_TEXT[problem].short),
    ...(dpu === '' ? [] : ['dpu']),
  ],
};

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
