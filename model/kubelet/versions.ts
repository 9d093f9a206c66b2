/** What differs between kubelet versions in what this model predicts. */
export interface Behaviour {
  /**
   * Over which NUMA nodes the device manager makes hints: over all of the host's (so also wide ones, which can merge
   * with a wide CPU hint), or since kubernetes #138244 only over those that have such a device.
   */
  readonly deviceHints: 'all-nodes' | 'device-nodes';
  /**
   * Whether a rest that is no whole core is rounded up when it is sought in one uncore cache. Before 1.33 it was
   * rounded down, with another outcome for odd requests, which is not modelled.
   */
  readonly uncoreRoundsUp: boolean;
  /**
   * What happens to an in-place resize of a Guaranteed pod under a static manager: nothing, as in-place resize is alpha
   * before 1.33; in 1.33 it is refused whatever it changes; since 1.34 if it changes what that manager gave out.
   */
  readonly resize: 'ignored' | 'refused-whole' | 'refused-by-resource';
}

/**
 * Behaviour by minor version of Kubernetes 1. Each row was compared with that version's source, file by file: the CPU,
 * device, memory and topology managers of 1.32.13, 1.33.13, 1.34.9, 1.35.6 and 1.36.2. What is not listed is not
 * predicted.
 *
 * A distribution may carry a change earlier than its version says (OpenShift carries #138244 in its 1.35); where that
 * is known, the configuration overrides the row.
 */
const BEHAVIOUR: Readonly<Record<number, Behaviour>> = {
  32: { deviceHints: 'all-nodes', uncoreRoundsUp: false, resize: 'ignored' },
  33: { deviceHints: 'all-nodes', uncoreRoundsUp: true, resize: 'refused-whole' },
  34: { deviceHints: 'all-nodes', uncoreRoundsUp: true, resize: 'refused-by-resource' },
  35: { deviceHints: 'all-nodes', uncoreRoundsUp: true, resize: 'refused-by-resource' },
  36: {
    deviceHints: 'device-nodes',
    uncoreRoundsUp: true,
    resize: 'refused-by-resource',
  },
};

/** The versions that are predicted, for messages. */
export const PREDICTED_VERSIONS = '1.32 to 1.36';

/** How the kubelet of a version behaves, or undefined if that version is not predicted. */
export function behaviourOf(version: string): Behaviour | undefined {
  const match = /^v?1\.([0-9]+)(?:[.+-]|$)/.exec(version);
  return match ? BEHAVIOUR[Number(match[1])] : undefined;
}
