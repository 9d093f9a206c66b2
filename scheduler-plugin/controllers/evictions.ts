import { isConflict, isNotFound, type KubeClient, KubeError } from '../../kube/client.ts';
import { BoundedMap } from '../../model/bounded-map.ts';
import { PLACE_LOST } from '../../model/names.ts';
import { logFailure } from '../../runtime/log.ts';
import type { ClusterState } from '../cluster/cluster-state.ts';
import { type DpuMonitor, lastRenewalText } from '../cluster/dpu-health.ts';
import { namesOf, type PodView } from '../cluster/pod-view.ts';
import type { ExtenderContext } from '../telemetry/context.ts';
import { FairQueue } from './fair-queue.ts';

interface EvictionReason {
  readonly reason: 'DPUNotReady' | 'AllocationRefused' | 'PlaceLost';
  readonly text: string;
}

type StuckPod = { readonly pod: PodView; readonly why: EvictionReason };

interface EvictionsOptions extends Pick<ExtenderContext, 'client' | 'events' | 'active' | 'log'> {
  readonly policy: 'evict' | 'hold';
  /** Returns the current pod if it still cannot start. Called right before the eviction. */
  readonly stuck: (pod: PodView) => StuckPod | undefined;
  readonly onAttempt: (outcome: RemovalOutcome) => void;
}

/** Milliseconds between two evictions: a rack of dead DPUs must not empty a cluster at once. */
const EVICTION_INTERVAL_MILLISECONDS = 1000;
const MAX_HOLD_EVENTS = 5000;
/** Consecutive failures before the pod gets an Event: an API server may be down for a moment. */
const FAILURES_BEFORE_EVENT = 3;

/**
 * Evicts pods that were bound to a node and cannot start there, so that their owner creates others. Running pods are
 * never evicted. A failed eviction is retried with increasing pauses. Namespaces take turns.
 */
export class Evictions {
  readonly #options: EvictionsOptions;
  readonly #queue = new FairQueue<PodView>();
  readonly #retries = new Retries();
  readonly #announced = new BoundedMap<string, true>(MAX_HOLD_EVENTS);
  #running = false;
  #evicting: string | undefined;

  constructor(options: EvictionsOptions) {
    this.#options = options;
  }

  consider(pod: PodView, why: EvictionReason): void {
    const { policy, active } = this.#options;
    if (policy === 'evict') this.#enqueue(pod);
    else if (active() && !this.#announced.has(pod.uid)) {
      this.#announced.set(pod.uid, true);
      this.#recordEvent(pod, 'FailedToStart', why.text);
    }
  }

  stop(): void {
    this.#retries.stop();
    this.#queue.clear();
  }

  #enqueue(pod: PodView): void {
    if (!this.#options.active()) {
      this.#retries.forget(pod.uid);
      return;
    }
    if (this.#evicting === pod.uid || this.#retries.isWaiting(pod.uid)) return;
    this.#queue.set(pod.namespace, pod.uid, pod);
    if (this.#running) return;
    this.#running = true;
    this.#schedule(0);
  }

  #schedule(milliseconds: number): void {
    setTimeout(() => this.#next().catch(logFailure(this.#options.log)), milliseconds).unref();
  }

  async #next(): Promise<void> {
    const pod = this.#queue.take();
    if (pod === undefined || !this.#options.active()) {
      this.#running = false;
      this.#queue.clear();
      return;
    }
    let waitMilliseconds = EVICTION_INTERVAL_MILLISECONDS;
    try {
      const stuck = this.#options.stuck(pod);
      if (stuck) await this.#evict(stuck);
      else {
        this.#retries.forget(pod.uid);
        waitMilliseconds = 0;
      }
    } finally {
      this.#schedule(waitMilliseconds);
    }
  }

  async #evict(stuck: StuckPod): Promise<void> {
    this.#evicting = stuck.pod.uid;
    // It never throws.
    const removal = await removeUnstarted(this.#options.client, stuck.pod);
    this.#evicting = undefined;
    const { outcome } = removal;
    this.#options.onAttempt(outcome);
    if (outcome === 'evicted' || outcome === 'deleted') this.#removed(stuck, outcome);
    else if (outcome === 'gone') this.#retries.forget(stuck.pod.uid);
    else this.#failed(stuck, removal);
  }

  #removed({ pod, why }: StuckPod, how: 'evicted' | 'deleted'): void {
    this.#retries.forget(pod.uid);
    const note = how === 'deleted' ? ' (deleted: KubeVirt denies its eviction)' : '';
    const [event, message] = ['EvictedBeforeStart', `${why.text}${note}`];
    const fields = { ...namesOf(pod), node: pod.node, code: why.reason, event, message };
    this.#options.log.info(fields, 'pod removed');
    this.#recordEvent(pod, event, message);
  }

  #failed({ pod, why }: StuckPod, { outcome, error: err }: Removal): void {
    const { uid, node } = pod;
    const failures = this.#retries.failed(uid, () => this.#enqueue(pod));
    if (outcome === 'changed') return;
    this.#options.log.warn({ err, ...namesOf(pod), node, failures }, 'pod eviction failed');
    if (failures !== FAILURES_BEFORE_EVENT) return;
    this.#recordEvent(pod, 'CannotEvict', `${why.text}; evicting the pod failed: ${(err as Error).message}`);
  }

  #recordEvent({ namespace, name, uid }: PodView, reason: string, message: string): void {
    const target = { apiVersion: 'v1', kind: 'Pod', namespace, name, uid };
    this.#options.events.record(target, { type: 'Warning', reason, message });
  }
}

/** Milliseconds until the first retry; each later one waits twice as long, up to MAX_RETRY_MILLISECONDS. */
const FIRST_RETRY_MILLISECONDS = 1000;
const MAX_RETRY_MILLISECONDS = 60_000;
/** Beyond that, the one that failed longest ago is forgotten. */
const MAX_KEYS = 5000;

export class Retries {
  readonly #keys = new Map<string, { readonly failures: number; readonly timer: NodeJS.Timeout | undefined }>();

  /** @returns its number of consecutive failures */
  failed(key: string, retry: () => void): number {
    const failures = (this.#keys.get(key)?.failures ?? 0) + 1;
    this.forget(key);
    const [oldest] = this.#keys.keys();
    if (this.#keys.size >= MAX_KEYS && oldest !== undefined) this.forget(oldest);
    const wait = Math.min(MAX_RETRY_MILLISECONDS, FIRST_RETRY_MILLISECONDS * 2 ** (failures - 1));
    const timer = setTimeout(() => {
      this.#keys.set(key, { failures, timer: undefined });
      retry();
    }, wait);
    this.#keys.set(key, { failures, timer: timer.unref() });
    return failures;
  }

  isWaiting(key: string): boolean {
    return this.#keys.get(key)?.timer !== undefined;
  }

  forget(key: string): void {
    clearTimeout(this.#keys.get(key)?.timer);
    this.#keys.delete(key);
  }

  stop(): void {
    for (const key of [...this.#keys.keys()]) this.forget(key);
  }
}

interface StartFacts {
  readonly state: Pick<ClusterState, 'startingOn' | 'hostRefusals' | 'lostPlaces'>;
  readonly dpuHealth: Pick<DpuMonitor, 'verdict' | 'isDpuHost'>;
}

/** Why a pod that has not started can never start on the node that it is bound to, or undefined. */
export function whyStuck(pod: PodView, { state, dpuHealth }: StartFacts): EvictionReason | undefined {
  const node = pod.node ?? '';
  // A static pod has no owner that would create it elsewhere: its kubelet creates the mirror again.
  if (pod.kubeletUid !== pod.uid) return undefined;
  const refusal = state.hostRefusals.of(node, pod);
  if (refusal !== undefined) return { reason: 'AllocationRefused', text: `${node}: ${refusal}` };
  if (state.lostPlaces.on(node).has(pod.uid))
    return { reason: 'PlaceLost', text: `node ${node} ${PLACE_LOST}: its kubelet would refuse the pod` };
  if (!pod.needs.dpu || !dpuHealth.isDpuHost(node)) return undefined;
  const { state: lease, age } = dpuHealth.verdict(node);
  const text = `the DPU of node ${node} has died before the pod started: ${lastRenewalText(age)}`;
  return lease === 'dead' ? { reason: 'DPUNotReady', text } : undefined;
}

/** Undefined if it has started, or can start. */
export function stuckPodOf(pod: PodView, facts: StartFacts): StuckPod | undefined {
  const newest = facts.state.startingOn(pod.node ?? '').find(({ uid }) => uid === pod.uid);
  const why = newest && whyStuck(newest, facts);
  return newest && why && { pod: newest, why };
}

/** refused: by a disruption budget, by KubeVirt, or for lack of permission; changed: since the pod was read. */
type RemovalOutcome = 'evicted' | 'deleted' | 'gone' | 'changed' | 'refused' | 'failed';

export type Removal = { readonly outcome: RemovalOutcome; readonly error?: unknown };

/** In KubeVirt's pkg/virt-operator/resource/generate/components/webhooks.go; with status 429. */
const INTERCEPTOR = 'admission webhook "virt-launcher-eviction-interceptor.kubevirt.io" denied the request';

/**
 * Through the Eviction API, so that disruption budgets apply. KubeVirt denies that for launchers whose VM migrates on
 * eviction and for targets of migrations, also if the guest never started: such a launcher is deleted, if unchanged.
 */
export async function removeUnstarted(client: KubeClient, pod: PodView): Promise<Removal> {
  const { namespace, name, uid } = pod;
  const path = `/api/v1/namespaces/${namespace}/pods/${name}`;
  // The uid protects a later pod of the same name, the version a launcher that has started in the meantime.
  const deleteOptions = { preconditions: { uid } };
  const eviction = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name, namespace }, deleteOptions };
  const evicted = await attempt('evicted', () => client.create(`${path}/eviction`, eviction));
  const isDenied = evicted.error instanceof KubeError && evicted.error.message.includes(INTERCEPTOR);
  if (!isDenied || !pod.launcher || !pod.pending) return evicted;
  const preconditions = { uid, resourceVersion: pod.version };
  const body = { apiVersion: 'v1', kind: 'DeleteOptions', preconditions };
  return attempt('deleted', () => client.delete(path, { body }));
}

async function attempt(done: RemovalOutcome, call: () => Promise<unknown>): Promise<Removal> {
  try {
    await call();
    return { outcome: done };
  } catch (error) {
    if (isNotFound(error)) return { outcome: 'gone' };
    if (isConflict(error)) return { outcome: 'changed' };
    const isRefused = error instanceof KubeError && (error.status === 429 || error.status === 403);
    return { outcome: isRefused ? 'refused' : 'failed', error };
  }
}
