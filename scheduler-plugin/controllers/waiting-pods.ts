import type { PodNeeds } from '../cluster/pod-needs.ts';
import { FairQueue } from './fair-queue.ts';

export interface PodId {
  readonly uid: string;
  readonly namespace: string;
}

export interface WaitingPod extends PodId {
  readonly needs: PodNeeds;
  /** Whether the scheduler has asked this replica about it. */
  readonly wasRefusedHere: boolean;
  /** When the scheduler last asked about it, or when it was first seen. */
  readonly lastSeen: number;
  /** Number and time of the last of its touches for this pod, by node. */
  readonly touched: Map<string, { times: number; last: number }>;
}

/** Maximum waiting pods. Beyond that, the namespace with the most loses its least recent (the scheduler retries it). */
const MAX_WAITING = 5000;
/**
 * Seconds after which a pod that the scheduler has not asked about is forgotten. kube-scheduler retries each pod within
 * 330 s (podMaxInUnschedulablePodsDuration, and a flush every 30 s) plus its backoff. So a pod that it no longer asks
 * about was deleted, or is refused before any extender is called.
 */
export const FORGOTTEN_AFTER_SECONDS = 420;

/** The pods that wait for a node, bounded in number and time. */
export class WaitingPods {
  /** Monotonic seconds. */
  readonly #now: () => number;
  readonly #onRemoved: (pod: PodId) => void;
  /** The least recent pod is first. */
  readonly #pods = new Map<string, WaitingPod>();
  readonly #queue = new FairQueue<WaitingPod>();

  /** @param onRemoved called after a pod was removed, for any reason */
  constructor(now: () => number, onRemoved: (pod: PodId) => void) {
    this.#now = now;
    this.#onRemoved = onRemoved;
  }

  get size(): number {
    return this.#pods.size;
  }

  get(uid: string): WaitingPod | undefined {
    return this.#pods.get(uid);
  }

  /** One pod of each namespace, then the second of each, and so on. */
  all(): Iterable<WaitingPod> {
    return this.#queue.values();
  }

  add({ uid, namespace }: PodId, needs: PodNeeds, wasRefusedHere: boolean): void {
    this.forgetOld();
    const touched: WaitingPod['touched'] = this.#pods.get(uid)?.touched ?? new Map();
    this.#drop({ uid, namespace });
    const oldest = this.#pods.size >= MAX_WAITING ? this.#queue.oldestOfLargest() : undefined;
    if (oldest !== undefined) this.remove(oldest.uid);
    const pod = { uid, namespace, needs, wasRefusedHere, lastSeen: this.#now(), touched };
    this.#pods.set(uid, pod);
    this.#queue.set(namespace, uid, pod);
  }

  remove(uid: string): void {
    const pod = this.#pods.get(uid);
    if (pod === undefined) return;
    this.#drop(pod);
    this.#onRemoved(pod);
  }

  forgetOld(): void {
    for (const [uid, { lastSeen }] of this.#pods) {
      if (this.#now() - lastSeen < FORGOTTEN_AFTER_SECONDS) return;
      this.remove(uid);
    }
  }

  #drop({ uid, namespace }: PodId): void {
    this.#queue.delete(namespace, uid);
    this.#pods.delete(uid);
  }
}
