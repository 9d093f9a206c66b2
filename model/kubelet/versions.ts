/** What differs between kubelet versions in what this model predicts. */
export interface Behaviour {
  /**
   * Over which NUMA nodes the device manager makes hints: over all of the host's (so also wide ones, which can merge
   * with a wide CPU hint), or since kubernetes #138244 only over those that have such a device.
   */
  readonly deviceHints: 'all-nodes' | 'device-nodes';
}

/**
 * Behaviour by minor version of Kubernetes 1. Each row was read in that version's source; what is not listed is not
 * predicted.
 */
const BEHAVIOUR: Readonly<Record<number, Behaviour>> = {
  34: { deviceHints: 'all-nodes' },
  35: { deviceHints: 'all-nodes' },
  36: { deviceHints: 'device-nodes' },
};

/** The versions that are predicted, for messages. */
export const PREDICTED_VERSIONS = '1.34 to 1.36';

/** How the kubelet of a version behaves, or undefined if that version is not predicted. */
export function behaviourOf(version: string): Behaviour | undefined {
  const match = /^v?1\.([0-9]+)(?:[.+-]|$)/.exec(version);
  return match ? BEHAVIOUR[Number(match[1])] : undefined;
}
