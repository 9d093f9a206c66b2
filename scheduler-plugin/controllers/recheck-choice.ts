import type { PodNeeds } from '../cluster/pod-needs.ts';
import { FairQueue } from './fair-queue.ts';
import { type PodId, type WaitingPod, WaitingPods } from './waiting-pods.ts';

export interface Chosen {
  readonly node: string;
  readonly pods: readonly WaitingPod[];
}

export interface Choice {
  readonly chosen?: Chosen;
  /** Without a chosen node: when to call again, in seconds of the clock. */
  readonly askAt: number;
  /** Not all nodes were checked: call again after other work has run. */
  readonly unfinished?: boolean;
}

export interface RecheckChoiceOptions {
  /** Whether the node would accept such a pod now. */
  readonly wouldFit: (needs: PodNeeds, node: string) => boolean;
  /** Monotonic seconds. */
  readonly now: () => number;
}

/**
 * Maximum seconds between touches. Facts that the extender does not see, such as taints and selectors, may keep a pod
 * off a node. So each touch for the same pod and node waits twice as long as the previous one, until the scheduler's
 * own retry comes sooner (300 s). If the scheduler stops its search early, a touch waits only after the scheduler has
 * covered all nodes. Even then it may have skipped a node, since each of its workers takes a run of nodes, and all end
 * once enough nodes were found.
 */
const MAX_WAIT_SECONDS = 300;
/** Maximum kinds of waiting pods to check for one improved node. */
const MAX_KINDS = 200;
/** Seconds of checks without a pause. */
const MAX_CHECK_SECONDS = 0.01;
const AT_ONCE = Number.NEGATIVE_INFINITY;
const NEVER = Number.POSITIVE_INFINITY;

/** A node that the scheduler did not offer and that would accept the pod. */
interface Missed {
  readonly pod: WaitingPod;
  readonly node: string;
  readonly rounds: number;
}

/** When a node may be touched for a pod. @param free number of touches without a wait */
function dueAt({ touched }: WaitingPod, node: string, free = 0): number {
  const before = touched.get(node);
  if (before === undefined || before.times < free) return AT_ONCE;
  const wait = 2 ** (before.times - free - 1);
  return wait <= MAX_WAIT_SECONDS ? before.last + wait : NEVER;
}

/** When the first deferred touch of the node is due. */
function firstDue(pods: Iterable<WaitingPod>, node: string, now: number): number {
  let first = NEVER;
  for (const pod of pods) {
    const due = dueAt(pod, node);
    if (due > now) first = Math.min(first, due);
  }
  return first;
}

/** Chooses the next node to touch, and the waiting pods that it serves. It sets no timers. */
export class RecheckChoice {
  readonly #options: RecheckChoiceOptions;
  readonly #waiting: WaitingPods;
  readonly #improved = new Set<string>();
  /** When the next touch for a waiting pod is due, by improved node. */
  readonly #deferred = new Map<string, number>();
  /** The node that the scheduler did not offer, by pod. */
  readonly #missed = new FairQueue<Missed>();
  /** When other work has to get a turn. */
  #pauseAt = NEVER;
  /** The improved node whose check continues in the next call, and its predictions by kind of pod. */
  #checking: { readonly node: string; readonly fits: Map<string, boolean> } | undefined;

  constructor(options: RecheckChoiceOptions) {
    this.#options = options;
    this.#waiting = new WaitingPods(options.now, ({ namespace, uid }) => {
      this.#missed.delete(namespace, uid);
      if (this.#waiting.size === 0) this.forgetNodes();
    });
  }

  /** The scheduler asked about the pod, and this replica refused it on every node. */
  waits(pod: PodId, needs: PodNeeds): void {
    this.#waiting.add(pod, needs, true);
  }

  /**
   * Another replica may have refused the pod. It causes at most one touch: if an extender refused the pod, the
   * scheduler then asks this replica about it; otherwise the pod does not concern the extender.
   */
  mayWait(pod: PodId, needs: PodNeeds): void {
    if (this.#waiting.get(pod.uid) === undefined) this.#waiting.add(pod, needs, false);
  }

  /** The pod was placed or deleted. */
  settled(uid: string): void {
    this.#waiting.remove(uid);
  }

  /** A node may now accept pods that it refused before. */
  improved(node: string): void {
    if (this.#checking?.node === node) this.#checking = undefined;
    if (this.#waiting.size > 0) this.#improved.add(node);
  }

  /**
   * A node would accept the pod, but the scheduler stopped searching before it reached the node.
   * @param rounds attempts after which it must have reached every node, since each begins where the last one stopped
   */
  neverOffered({ uid, namespace }: PodId, needs: PodNeeds, node: string, rounds: number): void {
    this.waits({ uid, namespace }, needs);
    const pod = this.#waiting.get(uid);
    if (pod) this.#missed.set(namespace, uid, { pod, node, rounds });
  }

  /** Returns a node to touch now, or the time of the next one. A chosen node returns only after it is added again. */
  next(): Choice {
    const { now } = this.#options;
    this.#waiting.forgetOld();
    this.#pauseAt = now() + MAX_CHECK_SECONDS;
    const first = this.#nextMissed();
    if (first.chosen || first.unfinished) return first;
    const second = this.#nextImproved();
    return second.chosen || second.unfinished ? second : { askAt: Math.min(first.askAt, second.askAt) };
  }

  touched({ node, pods }: Chosen): void {
    for (const { uid, wasRefusedHere, touched } of pods) {
      touched.set(node, { times: (touched.get(node)?.times ?? 0) + 1, last: this.#options.now() });
      if (!wasRefusedHere && this.#waiting.get(uid)?.wasRefusedHere === false) this.#waiting.remove(uid);
    }
  }

  /** Forgets the nodes to touch; the pods keep waiting. */
  forgetNodes(): void {
    this.#improved.clear();
    this.#deferred.clear();
    this.#missed.clear();
  }

  get pending(): boolean {
    return this.#improved.size + this.#deferred.size + this.#missed.size > 0;
  }

  get waiting(): number {
    this.#waiting.forgetOld();
    return this.#waiting.size;
  }

  #mustPause(): boolean {
    return this.#options.now() >= this.#pauseAt;
  }

  /**
   * The waiting pods that the node would accept now and for which a touch is due. Pods with equal needs share one
   * prediction. Undefined if the check has to continue in the next call.
   */
  #servedBy(node: string): WaitingPod[] | undefined {
    const { wouldFit, now } = this.#options;
    if (this.#mustPause()) return undefined;
    const fits = this.#checking?.node === node ? this.#checking.fits : new Map<string, boolean>();
    this.#checking = { node, fits };
    const pods: WaitingPod[] = [];
    for (const pod of this.#waiting.all()) {
      if (dueAt(pod, node) > now()) continue;
      const kind = `${pod.needs.key} ${pod.needs.dpu}`;
      if (!fits.has(kind) && fits.size < MAX_KINDS) {
        if (this.#mustPause()) return undefined;
        fits.set(kind, wouldFit(pod.needs, node));
      }
      if (fits.get(kind) === true) pods.push(pod);
    }
    this.#checking = undefined;
    return pods;
  }

  #nextMissed(): Choice {
    const { wouldFit, now } = this.#options;
    let askAt = NEVER;
    const isDue = ({ pod, node, rounds }: Missed): boolean => {
      const due = dueAt(pod, node, rounds);
      if (due <= now() || due === NEVER) return true;
      askAt = Math.min(askAt, due);
      return false;
    };
    for (;;) {
      const next = this.#missed.take(isDue);
      if (next === undefined) return { askAt };
      const { pod, node, rounds } = next;
      if (dueAt(pod, node, rounds) <= now() && wouldFit(pod.needs, node))
        return { chosen: { node, pods: [pod] }, askAt };
      if (this.#mustPause()) return { askAt, unfinished: true };
    }
  }

  /** Defers a node, instead of forgetting it, if it was touched recently for every pod that it would serve. */
  #nextImproved(): Choice {
    const { now } = this.#options;
    for (const [node, due] of this.#deferred) if (due <= now()) this.#improved.add(node);
    for (const node of this.#improved) {
      const pods = this.#servedBy(node);
      if (pods === undefined) return { askAt: NEVER, unfinished: true };
      this.#improved.delete(node);
      this.#deferred.delete(node);
      if (pods.length > 0) return { chosen: { node, pods }, askAt: NEVER };
      const later = firstDue(this.#waiting.all(), node, now());
      if (later < NEVER) this.#deferred.set(node, later);
    }
    let askAt = NEVER;
    for (const due of this.#deferred.values()) askAt = Math.min(askAt, due);
    return { askAt };
  }
}
