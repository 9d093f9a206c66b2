/** Error codes of the CNI specification that the gate uses. Source: containernetworking/cni SPEC.md, section 5. */
export const CNI_CODES = {
  incompatibleVersion: 1,
  invalidEnvironment: 4,
  ioFailure: 5,
  decodeFailure: 6,
  invalidConfig: 7,
  /** Nothing is wrong with the call: the runtime should try again later. */
  tryAgainLater: 11,
  /** STATUS: new attachments cannot be made. */
  unavailable: 50,
} as const;

/** Why a call is not let through, as the runtime shows it to people. */
export interface CniError {
  readonly code: number;
  readonly message: string;
}

/** What every refusal for a dead DPU begins with. */
export const DPU_NOT_READY = 'DPU Not Ready';
