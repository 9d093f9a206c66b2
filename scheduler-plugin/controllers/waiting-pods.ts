import type { PodNeeds } from '../cluster/pod-needs.ts';

export interface WaitingPod {
  readonly uid: string;
  readonly needs: PodNeeds;
  /** Whether the scheduler has asked this replica about it. */
  readonly asked: boolean;
  /** When the scheduler last asked about it, or when it was first seen. */
  readonly heard: number;
  /** Number and time of the last of its touches for this pod, by node. */
  readonly touched: Map<string, { times: number; last: number }>;
}

/** The pods that wait for a node, bounded in number and time. */
export interface WaitingPods {
  readonly size: number;
  get(uid: string): WaitingPod | undefined;
  all(): Iterable<WaitingPod>;
  add(uid: string, needs: PodNeeds, asked: boolean): void;
  remove(uid: string): void;
  forgetOld(): void;
}

/** Maximum waiting pods. Beyond that, the least recent are forgotten (the scheduler retries by itself). */
const MOST_WAITING = 5000;
/**
 * Seconds after which a pod that the scheduler has not asked about is forgotten. kube-scheduler retries each pod within
 * 330 s (podMaxInUnschedulablePodsDuration, and a flush every 30 s) plus its backoff. So a pod that it no longer asks
 * about was deleted, or is refused before any extender is called.
 */
export const FORGOTTEN_AFTER = 420;

/**
 * @param now monotonic seconds
 * @param onRemoved called after a pod was removed, for any reason
 */
export function createWaitingPods(now: () => number, onRemoved: (uid: string) => void): WaitingPods {
  /** The least recent pod is first. */
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
