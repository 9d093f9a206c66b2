/** Why the kubelet rejects a pod at admission: the value of the pod's status.reason. */
export type RejectionReason = 'SMTAlignmentError' | 'TopologyAffinityError' | 'UnexpectedAdmissionError';

/** A rejection by the kubelet. Thrown only within the prediction. */
export class Rejection extends Error {
  readonly reason: RejectionReason;

  constructor(reason: RejectionReason, message: string) {
    super(message);
    this.reason = reason;
  }
}

/**
 * The kubelet's message for a CPU request that is not whole cores. Source: pkg/kubelet/cm/cpumanager/policy_static.go,
 * SMTAlignmentError.
 */
export function misalignedText(requested: number, cpusPerCore: number): string {
  return `SMT Alignment Error: requested ${requested} cpus not multiple cpus per core = ${cpusPerCore}`;
}

/**
 * The kubelet's message for too few free whole cores. Source: pkg/kubelet/cm/cpumanager/policy_static.go,
 * SMTAlignmentError.
 */
export function noPhysicalCpusText(available: number, requested: number, cpusPerCore: number): string {
  return (
    `SMT Alignment Error: not enough free physical CPUs: available physical CPUs = ${available}, ` +
    `requested CPUs = ${requested}, CPUs per core = ${cpusPerCore}`
  );
}

/** Source: pkg/kubelet/cm/topologymanager/topology_manager.go, TopologyAffinityError. */
export const NO_LOCALITY_TEXT = 'Resources cannot be allocated with Topology locality';

/** Any other error, with the kubelet's message. Source: pkg/kubelet/cm/admission/errors.go. */
export function unexpected(cause: string): Rejection {
  return new Rejection('UnexpectedAdmissionError', `Allocate failed due to ${cause}, which is unexpected`);
}
