import type { NodeItem } from './node.ts';

/** The cluster in a few numbers. */
export interface Totals {
  readonly nodes: number;
  readonly withProblems: number;
  readonly cores: number;
  readonly freeCores: number;
  readonly pods: number;
  readonly inFlight: number;
  readonly dpus: number;
  readonly dpusDead: number;
}

export function totalsOf(nodes: Iterable<NodeItem>): Totals {
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
