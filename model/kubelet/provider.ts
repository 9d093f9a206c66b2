import type { ContainerRequest } from './pod-request.ts';
import type { KubeletState } from './state.ts';

/**
 * One resource manager during the admission of one pod, on a copy of its state, which `commit` writes back. A pod that
 * is refused halfway is committed and then removed. Source: pkg/kubelet/cm/topologymanager/topology_manager.go,
 * HintProvider.
 */
export interface Provider {
  containerHints(container: ContainerRequest): ProviderHints;
  podHints(): ProviderHints;
  /** @param mask the merged mask; null: any node @throws Rejection */
  allocate(container: ContainerRequest, mask: number | null, preferred: boolean): void;
  commit(state: KubeletState): KubeletState;
}

/** NUMA nodes as bits over the topology's `numaIds`, or null for any. Source: topology_manager.go, TopologyHint. */
export interface Hint {
  readonly mask: number | null;
  readonly preferred: boolean;
}

/** The hints of one provider for one resource: a list, an empty list (`[]`: impossible), or null (no preference). */
export type ResourceHints = readonly Hint[] | null;

/** The hints of one provider, by resource; null or empty if it has none. */
export type ProviderHints = ReadonlyMap<string, ResourceHints> | null;

/** The number of NUMA nodes in a mask of at most 32 bits. */
export function bitCount(mask: number): number {
  let count = 0;
  for (let rest = mask; rest !== 0; rest &= rest - 1) count++;
  return count;
}

/** Whether a mask has fewer bits than another, or as many but lower ones. */
export function isNarrower(mask: number, other: number): boolean {
  const bits = bitCount(mask);
  const otherBits = bitCount(other);
  return bits === otherBits ? mask < other : bits < otherBits;
}

const subMasksOf = new Map<number, readonly number[]>();

/** Every non-empty subset of the bits of `mask`, by size, then by lowest bits first. Each hint needs them. */
export function subMasks(mask: number): readonly number[] {
  let masks = subMasksOf.get(mask);
  if (masks === undefined) {
    const subsets: number[] = [];
    for (let subset = mask; subset !== 0; subset = (subset - 1) & mask) subsets.push(subset);
    const lowestFirst = (a: number, b: number) => ((a & (a ^ b) & -(a ^ b)) === 0 ? 1 : -1);
    masks = subsets.sort((a, b) => bitCount(a) - bitCount(b) || lowestFirst(a, b));
    subMasksOf.set(mask, masks);
  }
  return masks;
}

const REASONS = ['SMTAlignmentError', 'TopologyAffinityError', 'UnexpectedAdmissionError'] as const;

/** The pod's status.reason, except `KubeletHangs`: it never answers, so there is no status. */
export type RejectionReason = (typeof REASONS)[number] | 'KubeletHangs';

/** Each has an Event with that reason. */
export const REJECTIONS: readonly string[] = REASONS;

/** Thrown only within the prediction. */
export class Rejection extends Error {
  readonly reason: RejectionReason;

  constructor(reason: RejectionReason, message: string) {
    super(message);
    this.reason = reason;
  }
}

/** Source: pkg/kubelet/cm/cpumanager/policy_static.go, SMTAlignmentError. */
export function misalignedText(requested: number, cpusPerCore: number): string {
  return `SMT Alignment Error: requested ${requested} cpus not multiple cpus per core = ${cpusPerCore}`;
}

/** Source: pkg/kubelet/cm/cpumanager/policy_static.go, SMTAlignmentError. */
export function noPhysicalCpusText(available: number, requested: number, cpusPerCore: number): string {
  return (
    `SMT Alignment Error: not enough free physical CPUs: available physical CPUs = ${available}, ` +
    `requested CPUs = ${requested}, CPUs per core = ${cpusPerCore}`
  );
}

/** Source: pkg/kubelet/cm/topologymanager/topology_manager.go, TopologyAffinityError. */
export const NO_LOCALITY_TEXT = 'Resources cannot be allocated with Topology locality';

/** Source: kubernetes #140730. */
export const HANG_TEXT =
  'the kubelet would hang for ever and start no further pod (kubernetes #140730, fixed in 1.38): full-pcpus-only and ' +
  'distribute-cpus-across-numa while parts of cores are free; reserve all threads of a core (reservedSystemCPUs), or ' +
  'switch one of the two options off';

/** Any other error, with the kubelet's message. Source: pkg/kubelet/cm/admission/errors.go. */
export function unexpected(cause: string): Rejection {
  return new Rejection('UnexpectedAdmissionError', `Allocate failed due to ${cause}, which is unexpected`);
}
