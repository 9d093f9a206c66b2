import type { EventRecorder } from '../../kube/events.ts';
import type { OwnerBackoff } from '../../model/reservations/owner-backoff.ts';
import type { Logger } from '../../runtime/log.ts';
import type { PodOwners } from './pod-owners.ts';
import type { PodView } from './pod-view.ts';

export interface OwnerRejectionsOptions {
  readonly ownerBackoff: OwnerBackoff;
  readonly owners: Pick<PodOwners, 'makerOf'>;
  readonly events: Pick<EventRecorder, 'record'>;
  readonly active: () => boolean;
  /** Called when a hold ends. Nothing else changes then, so the caller checks the nodes for waiting pods. */
  readonly onFree: () => void;
  readonly log: Logger;
  /** Monotonic seconds. */
  readonly now: () => number;
}

/**
 * Holds back the next pods of an owner after kubelets have refused several of its pods, and reports that in an Event.
 */
export function createOwnerRejections({
  ownerBackoff,
  owners,
  events,
  active,
  onFree,
  log,
  now,
}: OwnerRejectionsOptions) {
  return {
    /** Call it when a kubelet has refused this pod. */
    rejected({ owner: controller, namespace, rejected: reason }: PodView): void {
      if (controller === undefined) return;
      const { key, owner } = owners.makerOf(namespace, controller);
      const hold = ownerBackoff.failed(key, now());
      ownerBackoff.sweep(now());
      if (hold === undefined || !active()) return;
      const message = `kubelets refused several pods in a row (the last one with ${reason}); the extender places no pods of this owner for ${hold} s`;
      log.warn({ owner: owner.name, kind: owner.kind, hold, reason }, 'delaying pods of an owner');
      events.record({ ...owner, namespace }, { type: 'Warning', reason: 'PlacementHeldBack', message });
      setTimeout(onFree, (hold + 0.1) * 1000).unref();
    },
  };
}
