import type { NodeReach } from '../networks/common-cell.ts';

/** What matters of a node before a pod is placed; nodes of one make are one kind. */
export interface NodeKind extends NodeReach {
  /** As its kubelet counts: CPUs by cores. */
  readonly threadsPerCore: number;
  /** Its kubelet gives whole cores only. */
  readonly fullPcpusOnly: boolean;
}

/** The numbers of threads per core among nodes, each once, ascending. */
export function threadCounts(kinds: Iterable<NodeKind>): readonly number[] {
  return [...new Set([...kinds].map(({ threadsPerCore }) => threadsPerCore))].sort((a, b) => a - b);
}
