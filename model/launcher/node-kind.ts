import type { NodeReach } from '../networks/common-cell.ts';

/** What matters of a node before a pod is placed; nodes of one make are one kind. */
export interface NodeKind extends NodeReach {
  /** As its kubelet counts: CPUs by cores. */
  readonly threadsPerCore: number;
  /** Its kubelet gives whole cores only. */
  readonly fullPcpusOnly: boolean;
}

/**
 * What CPUs have to be a multiple of on some of the nodes, ascending: threads per core where the kubelet gives whole cores
 * only. Nodes whose kubelets do not ask for whole cores take any number, so they come to 1, and only where no other asks.
 * Empty: no node has reported.
 */
export function askedMultiples(kinds: readonly NodeKind[]): readonly number[] {
  const asking = kinds.filter(({ fullPcpusOnly }) => fullPcpusOnly).map(({ threadsPerCore }) => threadsPerCore);
  if (asking.length === 0) return kinds.length === 0 ? [] : [1];
  return [...new Set(asking)].sort((a, b) => a - b);
}
