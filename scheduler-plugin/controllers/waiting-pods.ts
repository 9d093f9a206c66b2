import type { PodNeeds } from '../cluster/pod-needs.ts';

export interface WaitingPod {
  readonly uid: string;
  readonly needs: PodNeeds;
  /** Whether the scheduler has asked this replica about it. */
  readonly asked: boolean;
  /** When the scheduler asked about it last, or when it was first seen. */
  readonly heard: number;
  /** By node: its touches for this pod, and when the last one was. */
  readonly touched: Map<string, { times: number; last: number }>;
}

/** The pods that wait for a node, a bounded number of them and for a bounded time. */
export interface WaitingPods {
  readonly size: number;
  get(uid: string): WaitingPod | undefined;
  all(): Iterable<WaitingPod>;
  add(uid: string, needs: PodNeeds, asked: boolean): void;
  remove(uid: string): void;
  forgetOld(): void;
}

/** Of more pods, those that were heard of longest ago are forgotten (the scheduler retries by itself). */
const MOST_WAITING = 5000;
/**
 * Seconds after which a pod is forgotten that the scheduler has not asked about. kube-scheduler retries each pod within
 * 330 s (podMaxInUnschedulablePodsDuration, and a flush every 30 s) and its back-off; so a pod it does not ask about any
 * more is gone, or is refused before any extender is asked.
 */
export const FORGOTTEN_AFTER = 420;

/**
 * @param now monotonic seconds
 * @param onRemoved called after a pod was removed, for whatever reason
 */
export function createWaitingPods(now: () => number, onRemoved: (uid: string) => void): WaitingPods {
  /** The one that was heard of longest ago is first. */
  const pods = new Map<string, WaitingPod>();
  const remove = (uid: string): void => {
    pods.delete(uid);
    onRemoved(uid);
  };
  const forgetOld = (): void => {
    for (const [uid, { heard }] of pods) {
      if (now() - heard < FORGOTTEN_AFTER) return;
      remove(uid);
    }
  };
  return {
    get size() {
      return pods.size;
    },
    get: (uid) => pods.get(uid),
    all: () => pods.values(),
    add(uid, needs, asked) {
      forgetOld();
      const touched: WaitingPod['touched'] = pods.get(uid)?.touched ?? new Map();
      pods.delete(uid);
      const [oldest] = pods.keys();
      if (pods.size >= MOST_WAITING && oldest !== undefined) remove(oldest);
      pods.set(uid, { uid, needs, asked, heard: now(), touched });
    },
    remove,
    forgetOld,
  };
}
