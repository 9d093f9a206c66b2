import { FairQueue } from '../../runtime/fair-queue.ts';
import { logFailure } from '../../runtime/log.ts';
import type { PodNeeds } from '../cluster/pod-needs.ts';
import type { PodView } from '../cluster/pod-view.ts';
import type { ExtenderContext } from '../telemetry/context.ts';

interface RecheckOptions extends Pick<ExtenderContext, 'active' | 'log' | 'nowSeconds'> {
  readonly wouldFit: (needs: PodNeeds, node: string) => boolean;
  /** Whether the node is excluded for pods of this namespace. */
  readonly isExcluded: (needs: PodNeeds, node: string) => boolean;
  /** Changes the node's annotation. @returns whether that succeeded; if not, it is retried */
  readonly touch: (node: string) => Promise<boolean>;
}

interface WaitingPod {
  readonly needs: PodNeeds;
  readonly wasRefusedHere: boolean;
  /** When the scheduler last asked about it, or when it was first seen. */
  readonly lastObserved: number;
  /** Number and time of the last of its touches for this pod, by node. */
  readonly touched: Map<string, { readonly times: number; readonly last: number }>;
  /** Touches of a node without a wait between them, apart from the interval of all writes. */
  readonly freeTouches: number;
}

/** Minimum seconds between two writes. One write wakes every waiting pod, so the whole cluster needs no more. */
const WRITE_INTERVAL_SECONDS = 1;
/** Seconds in which changes are collected, and in which a pod that was refused on one node may be accepted on others. */
const DEBOUNCE_SECONDS = 0.1;
/** Seconds in which the conditions of pods that the previous replica refused last may still arrive. */
const LATE_SECONDS = 10;
/**
 * Facts that the extender does not see, such as taints, may keep a pod off a node: each touch for the same pod and node
 * waits twice as long as the last one, until the scheduler's own retry comes sooner (300 s).
 */
const MAX_WAIT_SECONDS = 300;
const MAX_POD_KINDS = 200;
/** Seconds of checks without a pause, and of the pause. */
const MAX_CHECK_SECONDS = 0.01;
const CHECK_PAUSE_SECONDS = 0.001;
/** Maximum waiting pods. Beyond that, the namespace with the most loses its least recent (the scheduler retries it). */
const MAX_WAITING = 5000;
/** kube-scheduler retries within 330 s (podMaxInUnschedulablePodsDuration, a flush every 30 s) plus its backoff. */
const FORGOTTEN_AFTER_SECONDS = 420;
const AT_ONCE = Number.NEGATIVE_INFINITY;
const NEVER = Number.POSITIVE_INFINITY;

/**
 * Makes kube-scheduler retry refused pods. A change of a Lease or a custom resource wakes no waiting pod, a change of a
 * Node's annotation wakes all that an extender refused: so it changes that of a node that would now accept one. In a
 * quiet cluster it writes nothing. It ignores pods that the scheduler does not ask about.
 */
export class Recheck {
  readonly #options: RecheckOptions;
  /** Least recent first. */
  readonly #pods = new Map<string, WaitingPod>();
  readonly #queue = new FairQueue<WaitingPod>();
  /** When to check each node that has improved. */
  readonly #improved = new Map<string, number>();
  /** The node whose check continues, and its predictions by kind of pod. */
  #checking: { readonly node: string; readonly fits: Map<string, boolean> } | undefined;
  #timer: NodeJS.Timeout | undefined;
  #isWriting = false;
  #lastWrite = AT_ONCE;
  #lateUntil = AT_ONCE;
  #stopped = false;

  constructor(options: RecheckOptions) {
    this.#options = options;
  }

  get waiting(): number {
    this.#forgetOld();
    return this.#pods.size;
  }

  waits(needs: PodNeeds): void {
    this.#add(needs, { wasRefusedHere: true, freeTouches: 0 });
  }

  /**
   * The scheduler stopped searching before it reached a node that would accept the pod.
   * @param rounds attempts after which it must have reached every node, since each begins where the last one stopped
   */
  neverOffered(needs: PodNeeds, node: string, rounds: number): void {
    this.#add(needs, { wasRefusedHere: true, freeTouches: rounds });
    this.improved(node);
  }

  settled(uid: string): void {
    const pod = this.#pods.get(uid);
    if (pod === undefined) return;
    this.#pods.delete(uid);
    this.#queue.delete(pod.needs.namespace, uid);
    if (this.#pods.size === 0) this.#improved.clear();
  }

  improved(node: string): void {
    if (this.#checking?.node === node) this.#checking = undefined;
    if (this.#pods.size > 0) this.#improved.set(node, AT_ONCE);
    this.#schedule(DEBOUNCE_SECONDS);
  }

  /** When this replica has become the active one. Later it learns of waiting pods from the scheduler's calls. */
  takeOver(pods: Iterable<PodView | undefined>): void {
    this.#lateUntil = this.#options.nowSeconds() + LATE_SECONDS;
    for (const pod of pods) this.#mayWait(pod);
  }

  unschedulable(pod: PodView): void {
    const { active, nowSeconds } = this.#options;
    if (active() && nowSeconds() < this.#lateUntil) this.#mayWait(pod);
  }

  stop(): void {
    this.#stopped = true;
    clearTimeout(this.#timer);
  }

  /** At most one touch: if an extender refused the pod, the scheduler then asks this replica about it. */
  #mayWait(pod: PodView | undefined): void {
    if (!pod?.mayBeRefused || pod.deleting || pod.terminal || this.#pods.has(pod.uid)) return;
    this.#add(pod.needs, { wasRefusedHere: false, freeTouches: 0 });
  }

  #add(needs: PodNeeds, state: Pick<WaitingPod, 'wasRefusedHere' | 'freeTouches'>): void {
    const { namespace, request } = needs;
    const { uid } = request;
    this.#forgetOld();
    const touched: WaitingPod['touched'] = this.#pods.get(uid)?.touched ?? new Map();
    this.#pods.delete(uid);
    this.#queue.delete(namespace, uid);
    const oldest = this.#pods.size >= MAX_WAITING ? this.#queue.oldestOfLargest() : undefined;
    if (oldest !== undefined) this.settled(oldest.needs.request.uid);
    const pod = { needs, lastObserved: this.#options.nowSeconds(), touched, ...state };
    this.#pods.set(uid, pod);
    this.#queue.set(namespace, uid, pod);
  }

  #forgetOld(): void {
    for (const [uid, { lastObserved }] of this.#pods) {
      if (this.#options.nowSeconds() - lastObserved < FORGOTTEN_AFTER_SECONDS) return;
      this.settled(uid);
    }
  }

  /** At least a second after the last write. */
  #schedule(seconds: number): void {
    if (this.#timer !== undefined || this.#stopped || this.#isWriting || this.#improved.size === 0) return;
    const wait = Math.max(seconds, this.#lastWrite + WRITE_INTERVAL_SECONDS - this.#options.nowSeconds());
    this.#timer = setTimeout(() => this.#check().catch(logFailure(this.#options.log)), wait * 1000).unref();
  }

  async #check(): Promise<void> {
    const { active, touch, nowSeconds } = this.#options;
    this.#timer = undefined;
    this.#forgetOld();
    if (!active()) return this.#improved.clear();
    const until = nowSeconds() + MAX_CHECK_SECONDS;
    for (const [node, due] of this.#improved) {
      if (due > nowSeconds()) continue;
      const pods = this.#servedBy(node, until);
      if (pods === undefined) return this.#schedule(CHECK_PAUSE_SECONDS);
      if (pods.length === 0) continue;
      this.#lastWrite = nowSeconds();
      this.#isWriting = true;
      const isWritten = await touch(node);
      this.#isWriting = false;
      if (isWritten) this.#touched(node, pods);
      else this.improved(node);
      break;
    }
    this.#schedule(WRITE_INTERVAL_SECONDS);
  }

  /**
   * Undefined if the check has to continue after a pause. Pods with equal needs share one prediction. A node that was
   * touched recently for a pod is checked again when the next touch for it is due.
   */
  #servedBy(node: string, until: number): WaitingPod[] | undefined {
    const { isExcluded, nowSeconds } = this.#options;
    if (nowSeconds() >= until) return undefined;
    const fits = this.#checking?.node === node ? this.#checking.fits : new Map<string, boolean>();
    this.#checking = { node, fits };
    const pods: WaitingPod[] = [];
    let next = NEVER;
    for (const pod of this.#queue.values()) {
      const due = dueAt(pod, node);
      if (due > nowSeconds()) {
        next = Math.min(next, due);
        continue;
      }
      if (isExcluded(pod.needs, node)) continue;
      const kind = `${pod.needs.key} ${pod.needs.dpu}`;
      if (!fits.has(kind) && fits.size < MAX_POD_KINDS) {
        if (nowSeconds() >= until) return undefined;
        fits.set(kind, this.#wouldFit(pod.needs, node));
      }
      if (fits.get(kind) === true) pods.push(pod);
    }
    this.#checking = undefined;
    this.#improved.delete(node);
    if (pods.length === 0 && next < NEVER) this.#improved.set(node, next);
    return pods;
  }

  /** A prediction that fails must not stop the checks of other pods. */
  #wouldFit(needs: PodNeeds, node: string): boolean {
    const { wouldFit, log } = this.#options;
    try {
      return wouldFit(needs, node);
    } catch (err) {
      log.error({ err, uid: needs.request.uid, node }, 'background work failed');
      return false;
    }
  }

  #touched(node: string, pods: readonly WaitingPod[]): void {
    for (const { needs, wasRefusedHere, touched } of pods) {
      const { uid } = needs.request;
      touched.set(node, { times: (touched.get(node)?.times ?? 0) + 1, last: this.#options.nowSeconds() });
      if (!wasRefusedHere && this.#pods.get(uid)?.wasRefusedHere === false) this.settled(uid);
    }
  }
}

function dueAt({ touched, freeTouches }: WaitingPod, node: string): number {
  const before = touched.get(node);
  if (before === undefined || before.times < freeTouches) return AT_ONCE;
  const wait = 2 ** (before.times - freeTouches - 1);
  return wait <= MAX_WAIT_SECONDS ? before.last + wait : NEVER;
}
