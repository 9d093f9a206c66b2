import type { PodNeeds } from '../cluster/pod-needs.ts';

/**
 * Makes kube-scheduler look again at pods that were refused here. A change of a lease or of a custom resource wakes no
 * waiting pod, but a change of a Node's annotation wakes all that an extender refused. So when a node turns good for
 * one of them in this process's own view, and only then, that node is touched. In a quiet cluster nothing is written.
 */
export interface Recheck {
  /** A pod waits: it was refused on every node it was offered, or the scheduler says that it found none. */
  waits(uid: string, needs: PodNeeds): void;
  /** A pod found a node, or is gone. */
  settled(uid: string): void;
  /** A node may take pods now that it refused before. */
  improved(node: string): void;
  /**
   * A node would take the pod, and the scheduler stopped looking before it came to it.
   * @param rounds tries after which it must have come to every node, since each begins where the last one stopped
   */
  neverOffered(uid: string, needs: PodNeeds, node: string, rounds: number): void;
  readonly waiting: number;
  stop(): void;
}

export interface RecheckOptions {
  /** Whether the node would take such a pod now. */
  readonly wouldFit: (needs: PodNeeds, node: string) => boolean;
  /** Whether this replica is the one that writes. */
  readonly active: () => boolean;
  /** Changes the node's annotation, and says whether it was done; tried again where it was not. */
  readonly touch: (node: string) => Promise<boolean>;
  /** Monotonic seconds. */
  readonly now: () => number;
}

/** Seconds between two writes. One wakes every pod that waits, so there need not be more in the whole cluster. */
const INTERVAL = 1;
/** Seconds in which changes are gathered, and in which a pod that was refused on one node may pass on others. */
const GATHER = 0.1;
/**
 * What a node looks good for may be kept off it by what is not seen here (taints, selectors). So each touch for the
 * same pod and node waits twice as long as the one before, until the scheduler's own retry comes sooner (300 s); where
 * the scheduler stops early, only once it has gone round.
 */
const LONGEST = 300;
/** Kinds of waiting pods that are asked about for one improved node. */
const MOST_ASKED = 200;

interface Waiting {
  readonly needs: PodNeeds;
  readonly touched: Map<string, { times: number; last: number }>;
}

export function createRecheck({ wouldFit, active, touch, now }: RecheckOptions): Recheck {
  const waiting = new Map<string, Waiting>();
  const improved = new Set<string>();
  /** By pod: the node that was never offered. */
  const missed = new Map<string, { readonly node: string; readonly rounds: number }>();
  let timer: NodeJS.Timeout | undefined;
  let last = Number.NEGATIVE_INFINITY;
  let writing = false;

  const isDue = ({ touched }: Waiting, node: string, free = 0): boolean => {
    const before = touched.get(node);
    if (before === undefined || before.times < free) return true;
    const wait = 2 ** (before.times - free - 1);
    return wait <= LONGEST && now() - before.last >= wait;
  };

  /** The waiting pods that a node would take now. Pods alike are asked about once. */
  const servedBy = (node: string): Waiting[] => {
    const fits = new Map<string, boolean>();
    return [...waiting.values()].filter((pod) => {
      if (!isDue(pod, node)) return false;
      const kind = `${pod.needs.key} ${pod.needs.dpu}`;
      const fit = fits.get(kind) ?? (fits.size < MOST_ASKED && wouldFit(pod.needs, node));
      fits.set(kind, fit);
      return fit;
    });
  };

  /** A node whose touch would serve some waiting pod. */
  const choose = (): { readonly node: string; readonly pods: readonly Waiting[] } | undefined => {
    for (const [uid, { node, rounds }] of missed) {
      const pod = waiting.get(uid);
      missed.delete(uid);
      if (pod && isDue(pod, node, rounds) && wouldFit(pod.needs, node)) return { node, pods: [pod] };
    }
    for (const node of improved) {
      improved.delete(node);
      const pods = servedBy(node);
      if (pods.length > 0) return { node, pods };
    }
    return undefined;
  };

  const look = async (): Promise<void> => {
    timer = undefined;
    if (!active()) {
      improved.clear();
      missed.clear();
      return;
    }
    const chosen = choose();
    if (chosen === undefined) return;
    last = now();
    writing = true;
    const done = await touch(chosen.node);
    writing = false;
    if (!done) improved.add(chosen.node);
    else {
      for (const { touched } of chosen.pods) {
        const times = (touched.get(chosen.node)?.times ?? 0) + 1;
        touched.set(chosen.node, { times, last: now() });
      }
    }
    schedule();
  };

  function schedule(): void {
    if (timer !== undefined || writing || waiting.size === 0) return;
    if (improved.size === 0 && missed.size === 0) return;
    const wait = Math.max(GATHER, last + INTERVAL - now());
    timer = setTimeout(() => void look(), wait * 1000);
    timer.unref();
  }

  return {
    waits(uid, needs) {
      if (waiting.has(uid)) return;
      waiting.set(uid, { needs, touched: new Map() });
    },
    settled(uid) {
      waiting.delete(uid);
      missed.delete(uid);
    },
    improved(node) {
      if (waiting.size === 0) return;
      improved.add(node);
      schedule();
    },
    neverOffered(uid, needs, node, rounds) {
      if (!waiting.has(uid)) waiting.set(uid, { needs, touched: new Map() });
      missed.set(uid, { node, rounds });
      schedule();
    },
    get waiting() {
      return waiting.size;
    },
    stop() {
      clearTimeout(timer);
      timer = undefined;
      waiting.clear();
    },
  };
}
