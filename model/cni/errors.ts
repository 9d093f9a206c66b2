/** Error codes of the CNI specification that the gate uses. Source: containernetworking/cni SPEC.md, section 5. */
export const CNI_CODES = {
  incompatibleVersion: 1,
  invalidEnvironment: 4,
  ioFailure: 5,
  decodeFailure: 6,
  invalidConfig: 7,
  /** The call is valid: the runtime should retry later. */
  tryAgainLater: 11,
  /** STATUS: the plugin cannot create new attachments. */
  unavailable: 50,
} as const;

/** Why a call fails, as the runtime shows it to users. */
export interface CniError {
  readonly code: number;
  readonly message: string;
}

/** Prefix of every refusal because of a dead DPU. */
export const DPU_NOT_READY = 'DPU Not Ready';
