/** Seconds from a filter call to the binding of a pod that does not wait for a volume; in practice milliseconds. */
const QUICK = 60;
/** Seconds that kube-scheduler waits for a pod's volumes before it binds (VolumeBindingArgs.bindTimeoutSeconds). */
const VOLUMES = 600;

/** Default limit of a reservation in seconds: the limit for volumes, then the binding. */
export const DEFAULT_RESERVATION = VOLUMES + QUICK;

/**
 * Seconds for which kube-scheduler may still bind a pod after a filter call, without any update of the pod. Before
 * 1.35, or without the feature NominatedNodeNameForExpectation, it writes nothing before the binding itself. Room that
 * another pod gets within that time would be promised twice.
 *
 * @param waits whether its binding can wait for volumes or devices
 * @param most the limit for a pod that waits, in seconds
 */
export function reservationSeconds(waits: boolean, most: number): number {
  return waits ? most : Math.min(most, QUICK);
}
