import type { PodView } from '../cluster/pod-view.ts';
import type { Recheck } from './recheck.ts';

export interface TakeoverOptions {
  readonly recheck: Pick<Recheck, 'mayWait'>;
  readonly pods: () => Iterable<PodView | undefined>;
  readonly active: () => boolean;
  /** Monotonic seconds. */
  readonly now: () => number;
}

/** Seconds in which the conditions of pods come in that the replica before refused last. */
const LATE = 10;

/**
 * Which pods wait, for a replica that has just become the active one: those that the replica before may have refused. Later
 * on it knows from the scheduler's calls, and what a pod's condition says is no sign of a refusal by an extender.
 */
export function createTakeover({ recheck, pods, active, now }: TakeoverOptions) {
  let begun = Number.NEGATIVE_INFINITY;
  const consider = (pod: PodView | undefined): void => {
    if (pod?.mayBeRefused && !pod.deleting && !pod.terminal) recheck.mayWait(pod.uid, pod.needs);
  };
  return {
    /** This replica has become the active one. */
    begin(): void {
      begun = now();
      for (const pod of pods()) consider(pod);
    },
    /** The scheduler has found no node for the pod. */
    waiting(pod: PodView): void {
      if (active() && now() - begun < LATE) consider(pod);
    },
  };
}
