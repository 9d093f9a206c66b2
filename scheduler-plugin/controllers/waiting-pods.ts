import type { PodNeeds } from '../cluster/pod-needs.ts';
import { FairQueue } from './fair-queue.ts';

export interface PodId {
  readonly uid: string;
  readonly namespace: string;
}

export interface WaitingPod extends PodId {
  readonly needs: PodNeeds;
  /** Whether the scheduler has asked this replica about it. */
  readonly asked: boolean;
  /** When the scheduler last asked about it, or when it was first seen. */
  readonly heard: number;
  /** Number and time of the last of its touches for this pod, by node. */
  readonly touched: Map<string, { times: number; last: number }>;
}

/** Maximum waiting pods. Beyond that, the namespace with the most loses its least recent (the scheduler retries it). */
const MOST_WAITING = 5000;
/**
 * Seconds after which a pod that the scheduler has not asked about is forgotten. kube-scheduler retries each pod within
 * 330 s (podMaxInUnschedulablePodsDuration, and a flush every 30 s) plus its backoff. So a pod that it no longer asks
 * about was deleted, or is refused before any extender is called.
 */
export const FORGOTTEN_AFTER = 420;

/**
 * The pods that wait for a node, bounded in number and time.
 * @param now monotonic seconds
 * @param onRemoved called after a pod was removed, for any reason
 */
export function createWaitingPods(now: () => number, onRemoved: (pod: PodId) => void) {
  /** The least recent pod is first. */
  const pods = new Map<string, WaitingPod>();
  const queue = new FairQueue<WaitingPod>();
  const drop = ({ uid, namespace }: PodId): void => {
    queue.delete(namespace, uid);
    pods.delete(uid);
  };
  const remove = (uid: string): void => {
    const pod = pods.get(uid);
    if (pod === undefined) return;
    drop(pod);
    onRemoved(pod);
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
    get: (uid: string): WaitingPod | undefined => pods.get(uid),
    /** One pod of each namespace, then the second of each, and so on. */
    all: (): Iterable<WaitingPod> => queue.values(),
    add({ uid, namespace }: PodId, needs: PodNeeds, asked: boolean) {
      forgetOld();
      const touched: WaitingPod['touched'] = pods.get(uid)?.touched ?? new Map();
      drop({ uid, namespace });
      const oldest = pods.size >= MOST_WAITING ? queue.oldestOfLargest() : undefined;
      if (oldest !== undefined) remove(oldest.uid);
      const pod = { uid, namespace, needs, asked, heard: now(), touched };
      pods.set(uid, pod);
      queue.set(namespace, uid, pod);
    },
    remove,
    forgetOld,
  };
}
