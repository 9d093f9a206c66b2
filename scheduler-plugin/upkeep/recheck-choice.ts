import type { PodNeeds } from '../cluster/pod-needs.ts';

/** Which node to touch next, for which of the pods that wait. Keeps no time of its own. */
export interface RecheckChoice {
  waits(uid: string, needs: PodNeeds): void;
  settled(uid: string): void;
  improved(node: string): void;
  neverOffered(uid: string, needs: PodNeeds, node: string, rounds: number): void;
  /** A node to touch now, or when there will be one. What is chosen is not chosen again until it comes anew. */
  next(): Choice;
  /** The chosen node was touched. */
  touched(chosen: Chosen): void;
  /** Forgets which nodes there are to touch; the pods go on waiting. */
  forgetNodes(): void;
  /** Whether there is any node to touch, now or later. */
  readonly pending: boolean;
  readonly waiting: number;
}

export interface Chosen {
  readonly node: string;
  readonly pods: readonly WaitingPod[];
}

export interface Choice {
  readonly chosen?: Chosen;
  /** Without a chosen one: when to ask again, in seconds of the clock. */
  readonly askAt: number;
}

export interface WaitingPod {
  readonly needs: PodNeeds;
  /** By node: its touches for this pod, and when the last one was. */
  readonly touched: Map<string, { times: number; last: number }>;
}

export interface RecheckChoiceOptions {
  /** Whether the node would take such a pod now. */
  readonly wouldFit: (needs: PodNeeds, node: string) => boolean;
  /** Monotonic seconds. */
  readonly now: () => number;
}

/**
 * What a node looks good for may be kept off it by what is not seen here (taints, selectors). So each touch for the
 * same pod and node waits twice as long as the one before, until the scheduler's own retry comes sooner (300 s). Where
 * the scheduler stops early, only once it has gone round; even then it may have passed a node over, since its workers
 * each take a run of nodes and all end where enough were found.
 */
const LONGEST = 300;
/** Kinds of waiting pods that are asked about for one improved node. */
const MOST_ASKED = 200;

const AT_ONCE = Number.NEGATIVE_INFINITY;
const NEVER = Number.POSITIVE_INFINITY;

/** When a node may be touched for a pod. @param free touches that need not wait for each other */
function dueAt({ touched }: WaitingPod, node: string, free = 0): number {
  const before = touched.get(node);
  if (before === undefined || before.times < free) return AT_ONCE;
  const wait = 2 ** (before.times - free - 1);
  return wait <= LONGEST ? before.last + wait : NEVER;
}

export function createRecheckChoice({ wouldFit, now }: RecheckChoiceOptions): RecheckChoice {
  const waiting = new Map<string, WaitingPod>();
  const improved = new Set<string>();
  /** By node that has improved: when its next touch for some pod that waits is due. */
  const deferred = new Map<string, number>();
  /** By pod: the node that was never offered. */
  const missed = new Map<string, { readonly node: string; readonly rounds: number }>();

  /** The waiting pods for which a touch of the node is due and that it would take now. Pods alike are asked about once. */
  const servedBy = (node: string): WaitingPod[] => {
    const fits = new Map<string, boolean>();
    return [...waiting.values()].filter((pod) => {
      if (dueAt(pod, node) > now()) return false;
      const kind = `${pod.needs.key} ${pod.needs.dpu}`;
      const fit = fits.get(kind) ?? (fits.size < MOST_ASKED && wouldFit(pod.needs, node));
      fits.set(kind, fit);
      return fit;
    });
  };

  /** When the first touch of the node is due for a pod for which one is put off. */
  const nextDue = (node: string): number => {
    let first = NEVER;
    for (const pod of waiting.values()) {
      const due = dueAt(pod, node);
      if (due > now()) first = Math.min(first, due);
    }
    return first;
  };

  const nextMissed = (): Choice => {
    let askAt = NEVER;
    for (const [uid, { node, rounds }] of missed) {
      const pod = waiting.get(uid);
      const due = pod === undefined ? NEVER : dueAt(pod, node, rounds);
      if (due > now() && due < NEVER) {
        askAt = Math.min(askAt, due);
        continue;
      }
      missed.delete(uid);
      if (pod && due <= now() && wouldFit(pod.needs, node)) return { chosen: { node, pods: [pod] }, askAt };
    }
    return { askAt };
  };

  /** A node that was touched of late for every pod that it would serve is put off, not forgotten. */
  const nextImproved = (): Choice => {
    for (const [node, due] of deferred) if (due <= now()) improved.add(node);
    for (const node of improved) {
      improved.delete(node);
      deferred.delete(node);
      const pods = servedBy(node);
      if (pods.length > 0) return { chosen: { node, pods }, askAt: NEVER };
      const later = nextDue(node);
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
  const waits = (uid: string, needs: PodNeeds): void => {
    if (!waiting.has(uid)) waiting.set(uid, { needs, touched: new Map() });
  };

  return {
    waits,
    settled(uid) {
      waiting.delete(uid);
      missed.delete(uid);
      if (waiting.size === 0) forgetNodes();
    },
    improved(node) {
      if (waiting.size > 0) improved.add(node);
    },
    neverOffered(uid, needs, node, rounds) {
      waits(uid, needs);
      missed.set(uid, { node, rounds });
    },
    next() {
      const first = nextMissed();
      if (first.chosen) return first;
      const second = nextImproved();
      return second.chosen ? second : { askAt: Math.min(first.askAt, second.askAt) };
    },
    touched({ node, pods }) {
      for (const { touched } of pods) touched.set(node, { times: (touched.get(node)?.times ?? 0) + 1, last: now() });
    },
    forgetNodes,
    get pending() {
      return improved.size + deferred.size + missed.size > 0;
    },
    get waiting() {
      return waiting.size;
    },
  };
}
