/** Why the kubelet fails a pod at admission: what it writes to the pod's status.reason. */
export type RejectionReason = 'SMTAlignmentError' | 'TopologyAffinityError' | 'UnexpectedAdmissionError';

/** An admission that the kubelet refuses; thrown inside the prediction, never out of it. */
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

/** Any other error as the kubelet words it. Source: pkg/kubelet/cm/admission/errors.go. */
export function unexpected(cause: string): Rejection {
  return new Rejection('UnexpectedAdmissionError', `Allocate failed due to ${cause}, which is unexpected`);
}
