import type { PodNeeds } from '../cluster/pod-needs.ts';
import type { PodView } from '../cluster/pod-view.ts';
import { createRecheckChoice, type PodId, type RecheckChoiceOptions } from './recheck-choice.ts';

/**
 * Makes kube-scheduler retry pods that this extender refused. A change of a Lease or of a custom resource wakes no
 * waiting pod, but a change of a Node's annotation wakes all pods that an extender refused. So when this process finds
 * that a node would now accept one of them, and only then, it changes that node's annotation. In a quiet cluster it
 * writes nothing. It ignores pods that the scheduler does not ask about.
 */
export type Recheck = ReturnType<typeof createRecheck>;

export interface RecheckOptions extends RecheckChoiceOptions {
  /** Whether this replica is the one that writes. */
  readonly active: () => boolean;
  /** Changes the node's annotation. @returns whether that succeeded; if not, it is retried */
  readonly touch: (node: string) => Promise<boolean>;
}

/** Minimum seconds between two writes. One write wakes every waiting pod, so the whole cluster needs no more. */
const INTERVAL = 1;
/**
 * Seconds in which changes are collected, and in which a pod that was refused on one node may be accepted on others.
 */
const GATHER = 0.1;

export function createRecheck({ wouldFit, active, touch, now }: RecheckOptions) {
  const choice = createRecheckChoice({ wouldFit, now });
  let timer: NodeJS.Timeout | undefined;
  let timerAt = Number.POSITIVE_INFINITY;
  let last = Number.NEGATIVE_INFINITY;
  let writing = false;
  let stopped = false;

  const stopTimer = (): void => {
    clearTimeout(timer);
    timer = undefined;
    timerAt = Number.POSITIVE_INFINITY;
  };

  const look = async (): Promise<void> => {
    stopTimer();
    if (!active()) {
      choice.forgetNodes();
      return;
    }
    const { chosen, askAt, unfinished } = choice.next();
    if (unfinished) {
      timerAt = now();
      timer = setTimeout(() => void look(), 1).unref();
      return;
    }
    if (chosen === undefined) {
      schedule(askAt);
      return;
    }
    last = now();
    writing = true;
    const done = await touch(chosen.node);
    writing = false;
    if (done) choice.touched(chosen);
    else choice.improved(chosen.node);
    schedule();
  };

  /** Schedules the next check, at least a second after the last write. */
  function schedule(at = now()): void {
    if (stopped || writing || !choice.pending) return;
    const wanted = Math.max(at, now() + GATHER, last + INTERVAL);
    if (wanted >= timerAt) return;
    stopTimer();
    timerAt = wanted;
    timer = setTimeout(() => void look(), (wanted - now()) * 1000).unref();
  }

  return {
    waits: choice.waits,
    mayWait: choice.mayWait,
    settled: choice.settled,
    improved(node: string) {
      choice.improved(node);
      schedule();
    },
    neverOffered(pod: PodId, needs: PodNeeds, node: string, rounds: number) {
      choice.neverOffered(pod, needs, node, rounds);
      schedule();
    },
    get waiting() {
      return choice.waiting;
    },
    stop() {
      stopped = true;
      stopTimer();
    },
  };
}

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
