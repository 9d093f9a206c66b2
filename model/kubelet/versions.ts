/** Differences between kubelet versions that affect predictions. */
export interface Behaviour {
  /**
   * NUMA nodes for which the device manager creates hints: all nodes of the host, which includes wide hints that can
   * merge with a wide CPU hint, or, since kubernetes #138244, only nodes that have such a device.
   */
  readonly deviceHints: 'all-nodes' | 'device-nodes';
}

/**
 * Behaviour by minor version of Kubernetes 1. Each row was compared with the source of that version, file by file: the
 * CPU, device, memory and topology managers of 1.33.13, 1.34.9, 1.35.6 and 1.36.2. Other versions are not
 * predicted.
 *
 * A distribution may backport a change, which its version does not show (OpenShift has #138244 in its 1.35).
 */
const BEHAVIOUR: Readonly<Record<number, Behaviour>> = {
  33: { deviceHints: 'all-nodes' },
  34: { deviceHints: 'all-nodes' },
  35: { deviceHints: 'all-nodes' },
  36: { deviceHints: 'device-nodes' },
};

/** The predicted versions, for messages. */
export const PREDICTED_VERSIONS = '1.33 to 1.36';

/** The behaviour of a kubelet version, or undefined if it is not predicted. @param version such as `v1.36.2` */
export function behaviourOf(version: string): Behaviour | undefined {
  const match = /^v?1\.([0-9]+)(?:[.+-]|$)/.exec(version);
  return match ? BEHAVIOUR[Number(match[1])] : undefined;
}
