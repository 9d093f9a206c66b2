/** Seconds from a filter call to the binding of a pod whose binding waits for no volume: in practice milliseconds. */
const QUICK = 60;
/** Seconds that kube-scheduler waits for a pod's volumes before it binds (VolumeBindingArgs.bindTimeoutSeconds). */
const VOLUMES = 600;

/** Seconds that a reservation lasts at most by default: the volumes' limit, then the binding. */
export const DEFAULT_RESERVATION = VOLUMES + QUICK;

/**
 * Seconds for which kube-scheduler may still bind a pod after a filter call, without any news of the pod: before 1.35, or
 * without the feature NominatedNodeNameForExpectation, it writes nothing until the binding itself. Room that is given to
 * another pod within that time is promised twice.
 *
 * @param waits its binding can wait for volumes or devices
 * @param most the limit for a pod that waits
 */
export function reservationSeconds(waits: boolean, most: number): number {
  return waits ? most : Math.min(most, QUICK);
}
