import type { PodNeeds } from '../cluster/pod-needs.ts';
import { FairQueue } from './fair-queue.ts';

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
const SECONDS_AT_ONCE = 0.01;
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
export function createRecheckChoice({ wouldFit, now }: RecheckChoiceOptions) {
  const improved = new Set<string>();
  /** When the next touch for a waiting pod is due, by improved node. */
  const deferred = new Map<string, number>();
  /** The node that the scheduler did not offer, by pod. */
  const missed = new FairQueue<Missed>();

  /** When other work has to get a turn. */
  let pauseAt = NEVER;
  const mustPause = (): boolean => now() >= pauseAt;
  /** The improved node whose check continues in the next call, and its predictions by kind of pod. */
  let checking: { readonly node: string; readonly fits: Map<string, boolean> } | undefined;

  /**
   * The waiting pods that the node would accept now and for which a touch is due. Pods with equal needs share one
   * prediction. Undefined if the check has to continue in the next call.
   */
  const servedBy = (node: string): WaitingPod[] | undefined => {
    if (mustPause()) return undefined;
    const fits = checking?.node === node ? checking.fits : new Map<string, boolean>();
    checking = { node, fits };
    const pods: WaitingPod[] = [];
    for (const pod of waiting.all()) {
      if (dueAt(pod, node) > now()) continue;
      const kind = `${pod.needs.key} ${pod.needs.dpu}`;
      if (!fits.has(kind) && fits.size < MAX_KINDS) {
        if (mustPause()) return undefined;
        fits.set(kind, wouldFit(pod.needs, node));
      }
      if (fits.get(kind) === true) pods.push(pod);
    }
    checking = undefined;
    return pods;
  };

  const nextMissed = (): Choice => {
    let askAt = NEVER;
    const isLater = ({ pod, node, rounds }: Missed): boolean => {
      const due = dueAt(pod, node, rounds);
      if (due <= now() || due === NEVER) return false;
      askAt = Math.min(askAt, due);
      return true;
    };
    for (;;) {
      const next = missed.take((entry) => !isLater(entry));
      if (next === undefined) return { askAt };
      const { pod, node, rounds } = next;
      if (dueAt(pod, node, rounds) <= now() && wouldFit(pod.needs, node))
        return { chosen: { node, pods: [pod] }, askAt };
      if (mustPause()) return { askAt, unfinished: true };
    }
  };

  /** Defers a node, instead of forgetting it, if it was touched recently for every pod that it would serve. */
  const nextImproved = (): Choice => {
    for (const [node, due] of deferred) if (due <= now()) improved.add(node);
    for (const node of improved) {
      const pods = servedBy(node);
      if (pods === undefined) return { askAt: NEVER, unfinished: true };
      improved.delete(node);
      deferred.delete(node);
      if (pods.length > 0) return { chosen: { node, pods }, askAt: NEVER };
      const later = firstDue(waiting.all(), node, now());
      if (later < NEVER) deferred.set(node, later);
    }
    let askAt = NEVER;
    for (const due of deferred.values()) askAt = Math.min(askAt, due);
    return { askAt };
  };

  const forgetNodes = (): void => {
    improved.clear();
    deferred.clear();
    missed.clear();
  };
  const isForgotten = ({ namespace, uid }: PodId): void => {
    missed.delete(namespace, uid);
    if (waiting.size === 0) forgetNodes();
  };
  const waiting = createWaitingPods(now, isForgotten);
  const waits = (pod: PodId, needs: PodNeeds): void => waiting.add(pod, needs, true);

  return {
    /** The scheduler asked about the pod, and this replica refused it on every node. */
    waits,
    /**
     * Another replica may have refused the pod. It causes at most one touch: if an extender refused the pod, the
     * scheduler then asks this replica about it; otherwise the pod does not concern the extender.
     */
    mayWait(pod: PodId, needs: PodNeeds) {
      if (waiting.get(pod.uid) === undefined) waiting.add(pod, needs, false);
    },
    /** The pod was placed or deleted. */
    settled: waiting.remove,
    /** A node may now accept pods that it refused before. */
    improved(node: string) {
      if (checking?.node === node) checking = undefined;
      if (waiting.size > 0) improved.add(node);
    },
    /**
     * A node would accept the pod, but the scheduler stopped searching before it reached the node.
     * @param rounds attempts after which it must have reached every node, since each begins where the last one stopped
     */
    neverOffered({ uid, namespace }: PodId, needs: PodNeeds, node: string, rounds: number) {
      waits({ uid, namespace }, needs);
      const pod = waiting.get(uid);
      if (pod) missed.set(namespace, uid, { pod, node, rounds });
    },
    /** Returns a node to touch now, or the time of the next one. A chosen node returns only after it is added again. */
    next(): Choice {
      waiting.forgetOld();
      pauseAt = now() + SECONDS_AT_ONCE;
      const first = nextMissed();
      if (first.chosen || first.unfinished) return first;
      const second = nextImproved();
      return second.chosen || second.unfinished ? second : { askAt: Math.min(first.askAt, second.askAt) };
    },
    touched({ node, pods }: Chosen) {
      for (const { uid, asked, touched } of pods) {
        touched.set(node, { times: (touched.get(node)?.times ?? 0) + 1, last: now() });
        if (!asked && waiting.get(uid)?.asked === false) waiting.remove(uid);
      }
    },
    /** Forgets the nodes to touch; the pods keep waiting. */
    forgetNodes,
    get pending() {
      return improved.size + deferred.size + missed.size > 0;
    },
    get waiting() {
      waiting.forgetOld();
      return waiting.size;
    },
  };
}

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
const MAX_WAITING = 5000;
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
      const oldest = pods.size >= MAX_WAITING ? queue.oldestOfLargest() : undefined;
      if (oldest !== undefined) remove(oldest.uid);
      const pod = { uid, namespace, needs, asked, heard: now(), touched };
      pods.set(uid, pod);
      queue.set(namespace, uid, pod);
    },
    remove,
    forgetOld,
  };
}
