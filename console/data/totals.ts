import type { NodeItem } from './node.ts';

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
