import type { PodView } from '../cluster/pod-view.ts';
import type { Recheck } from './recheck.ts';

export interface TakeoverOptions {
  readonly recheck: Pick<Recheck, 'mayWait'>;
  readonly pods: () => Iterable<PodView | undefined>;
  readonly active: () => boolean;
  /** Monotonic seconds. */
  readonly now: () => number;
}

/** Seconds in which the conditions of pods that the previous replica refused last may still arrive. */
const LATE = 10;

/**
 * Finds the waiting pods for a replica that has just become the active one: those that the previous replica may have
 * refused. Later it learns of them from the scheduler's calls, and a pod's condition no longer indicates a refusal by
 * an extender.
 */
export function createTakeover({ recheck, pods, active, now }: TakeoverOptions) {
  let begun = Number.NEGATIVE_INFINITY;
  const consider = (pod: PodView | undefined): void => {
    if (pod?.mayBeRefused && !pod.deleting && !pod.terminal) recheck.mayWait(pod, pod.needs);
  };
  return {
    /** Begins when this replica has become the active one. */
    begin(): void {
      begun = now();
      for (const pod of pods()) consider(pod);
    },
    /** The scheduler found no node for the pod. */
    waiting(pod: PodView): void {
      if (active() && now() - begun < LATE) consider(pod);
    },
  };
}
