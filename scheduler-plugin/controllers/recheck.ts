import type { Cluster } from '../cluster/cluster.ts';
import type { PodNeeds } from '../cluster/pod-needs.ts';
import type { PodView } from '../cluster/pod-view.ts';
import { RecheckChoice, type RecheckChoiceOptions } from './recheck-choice.ts';
import type { PodId } from './waiting-pods.ts';

export interface RecheckOptions extends RecheckChoiceOptions {
  /** Whether this replica is the one that writes. */
  readonly active: () => boolean;
  /** Changes the node's annotation. @returns whether that succeeded; if not, it is retried */
  readonly touch: (node: string) => Promise<boolean>;
}

/** Minimum seconds between two writes. One write wakes every waiting pod, so the whole cluster needs no more. */
const WRITE_INTERVAL_SECONDS = 1;
/**
 * Seconds in which changes are collected, and in which a pod that was refused on one node may be accepted on others.
 */
const DEBOUNCE_SECONDS = 0.1;

/**
 * Makes kube-scheduler retry pods that this extender refused. A change of a Lease or of a custom resource wakes no
 * waiting pod, but a change of a Node's annotation wakes all pods that an extender refused. So when this process finds
 * that a node would now accept one of them, and only then, it changes that node's annotation. In a quiet cluster it
 * writes nothing. It ignores pods that the scheduler does not ask about.
 */
export class Recheck extends RecheckChoice {
  readonly #options: RecheckOptions;
  #timer: NodeJS.Timeout | undefined;
  #timerAt = Number.POSITIVE_INFINITY;
  #lastWrite = Number.NEGATIVE_INFINITY;
  #isWriting = false;
  #stopped = false;

  constructor(options: RecheckOptions) {
    super(options);
    this.#options = options;
  }

  override improved(node: string): void {
    super.improved(node);
    this.#schedule();
  }

  override neverOffered(pod: PodId, needs: PodNeeds, node: string, rounds: number): void {
    super.neverOffered(pod, needs, node, rounds);
    this.#schedule();
  }

  stop(): void {
    this.#stopped = true;
    this.#stopTimer();
  }

  #stopTimer(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#timerAt = Number.POSITIVE_INFINITY;
  }

  /** Schedules the next check, at least a second after the last write. */
  #schedule(at = this.#options.now()): void {
    if (this.#stopped || this.#isWriting || !this.pending) return;
    const { now } = this.#options;
    const due = Math.max(at, now() + DEBOUNCE_SECONDS, this.#lastWrite + WRITE_INTERVAL_SECONDS);
    if (due < this.#timerAt) this.#setTimer(due, (due - now()) * 1000);
  }

  #setTimer(at: number, milliseconds: number): void {
    this.#stopTimer();
    this.#timerAt = at;
    this.#timer = setTimeout(() => void this.#check(), milliseconds).unref();
  }

  async #check(): Promise<void> {
    const { active, touch, now } = this.#options;
    this.#stopTimer();
    if (!active()) {
      this.forgetNodes();
      return;
    }
    const { chosen, askAt, unfinished } = this.next();
    if (unfinished) {
      this.#setTimer(now(), 1);
      return;
    }
    if (chosen === undefined) {
      this.#schedule(askAt);
      return;
    }
    this.#lastWrite = now();
    this.#isWriting = true;
    const isWritten = await touch(chosen.node);
    this.#isWriting = false;
    if (isWritten) this.touched(chosen);
    else super.improved(chosen.node);
    this.#schedule();
  }
}

export interface TakeoverOptions {
  readonly recheck: Pick<Recheck, 'mayWait'>;
  readonly cluster: Pick<Cluster, 'pods'>;
  readonly active: () => boolean;
  /** Monotonic seconds. */
  readonly now: () => number;
}

/** Seconds in which the conditions of pods that the previous replica refused last may still arrive. */
const LATE_SECONDS = 10;

/**
 * Finds the waiting pods for a replica that has just become the active one: those that the previous replica may have
 * refused. Later it learns of them from the scheduler's calls, and a pod's condition no longer indicates a refusal by
 * an extender.
 */
export class Takeover {
  readonly #options: TakeoverOptions;
  #begun = Number.NEGATIVE_INFINITY;

  constructor(options: TakeoverOptions) {
    this.#options = options;
  }

  /** Begins when this replica has become the active one. */
  begin(): void {
    const { cluster, now } = this.#options;
    this.#begun = now();
    for (const pod of cluster.pods.values()) this.#consider(pod);
  }

  /** The scheduler found no node for the pod. */
  waiting(pod: PodView): void {
    const { active, now } = this.#options;
    if (active() && now() - this.#begun < LATE_SECONDS) this.#consider(pod);
  }

  #consider(pod: PodView | undefined): void {
    if (pod?.mayBeRefused && !pod.deleting && !pod.terminal) this.#options.recheck.mayWait(pod, pod.needs);
  }
}
