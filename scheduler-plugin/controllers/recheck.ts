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
/** Seconds in which the conditions of pods that the previous replica refused last may still arrive. */
const LATE_SECONDS = 10;

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
  /** Until then, conditions of pods that the previous replica refused may still arrive. */
  #lateUntil = Number.NEGATIVE_INFINITY;
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

  /**
   * Finds the waiting pods when this replica has become the active one: those that the previous replica may have
   * refused. Later it learns of them from the scheduler's calls, and a pod's condition no longer indicates a refusal by
   * an extender.
   */
  takeOver(pods: Iterable<PodView | undefined>): void {
    this.#lateUntil = this.#options.now() + LATE_SECONDS;
    for (const pod of pods) this.#consider(pod);
  }

  /** The scheduler found no node for the pod. */
  unschedulable(pod: PodView): void {
    const { active, now } = this.#options;
    if (active() && now() < this.#lateUntil) this.#consider(pod);
  }

  stop(): void {
    this.#stopped = true;
    this.#stopTimer();
  }

  #consider(pod: PodView | undefined): void {
    if (pod?.mayBeRefused && !pod.deleting && !pod.terminal) this.mayWait(pod, pod.needs);
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
