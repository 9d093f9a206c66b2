import type { NodeReach } from '../networks/common-cell.ts';

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
