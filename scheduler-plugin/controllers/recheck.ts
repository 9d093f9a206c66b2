import type { PodNeeds } from '../cluster/pod-needs.ts';
import { createRecheckChoice, type RecheckChoiceOptions } from './recheck-choice.ts';

/**
 * Makes kube-scheduler look again at pods that were refused here. A change of a lease or of a custom resource wakes no
 * waiting pod, but a change of a Node's annotation wakes all that an extender refused. So when a node turns good for
 * one of them in this process's own view, and only then, that node is touched. In a quiet cluster nothing is written.
 * It ignores pods that the scheduler does not ask about, whatever they wait for.
 */
export interface Recheck {
  /** A pod waits: the scheduler asked about it, and it was refused on every node that it was offered. */
  waits(uid: string, needs: PodNeeds): void;
  /** After a takeover: a pod waits that the replica before may have refused. */
  mayWait(uid: string, needs: PodNeeds): void;
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

export interface RecheckOptions extends RecheckChoiceOptions {
  /** Whether this replica is the one that writes. */
  readonly active: () => boolean;
  /** Changes the node's annotation, and says whether it was done; tried again where it was not. */
  readonly touch: (node: string) => Promise<boolean>;
}

/** Seconds between two writes. One wakes every pod that waits, so there need not be more in the whole cluster. */
const INTERVAL = 1;
/** Seconds in which changes are gathered, and in which a pod that was refused on one node may pass on others. */
const GATHER = 0.1;

export function createRecheck({ wouldFit, active, touch, now }: RecheckOptions): Recheck {
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
      timer = setTimeout(() => void look(), 1);
      timer.unref();
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

  /** Looks for a node to touch at a time, and no sooner than a second after the last write. */
  function schedule(at = now()): void {
    if (stopped || writing || !choice.pending || at === Number.POSITIVE_INFINITY) return;
    const wanted = Math.max(at, now() + GATHER, last + INTERVAL);
    if (wanted >= timerAt) return;
    stopTimer();
    timerAt = wanted;
    timer = setTimeout(() => void look(), (wanted - now()) * 1000);
    timer.unref();
  }

  return {
    waits: choice.waits,
    mayWait: choice.mayWait,
    settled: choice.settled,
    improved(node) {
      choice.improved(node);
      schedule();
    },
    neverOffered(uid, needs, node, rounds) {
      choice.neverOffered(uid, needs, node, rounds);
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
