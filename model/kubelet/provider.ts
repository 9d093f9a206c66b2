import type { ProviderHints } from './hints.ts';
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

const REASONS = ['SMTAlignmentError', 'TopologyAffinityError', 'UnexpectedAdmissionError'] as const;

/** The pod's status.reason, except `KubeletHangs`: it never answers, so there is no status. */
export type RejectionReason = (typeof REASONS)[number] | 'KubeletHangs';

/** Each has an Event with that reason. */
export const REJECTIONS: readonly string[] = REASONS;

/** Thrown only within the prediction, of each node that does not fit: without a stack, which would cost most of it. */
export class Rejection {
  readonly reason: RejectionReason;
  readonly message: string;

  constructor(reason: RejectionReason, message: string) {
    this.reason = reason;
    this.message = message;
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
