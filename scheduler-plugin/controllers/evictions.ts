import { isConflict, isNotFound, type KubeClient, KubeError } from '../../kube/client.ts';
import type { EventRecorder } from '../../kube/events.ts';
import { BoundedMap } from '../../model/bounded-map.ts';
import { PLACE_LOST } from '../../model/names.ts';
import type { ClusterState } from '../cluster/cluster-state.ts';
import type { DpuHealth } from '../cluster/dpu-health.ts';
import type { PodView } from '../cluster/pod-view.ts';
import type { ExtenderLogger } from '../telemetry/log-messages.ts';
import { FairQueue } from './fair-queue.ts';

export type EvictionPolicy = 'evict' | 'hold';

/** Why a pod that has not started cannot start on its node, in the words of the table of states. */
export interface EvictionReason {
  readonly reason: 'DPUNotReady' | 'AllocationRefused' | 'PlaceLost';
  readonly text: string;
}

export interface StuckPod {
  readonly pod: PodView;
  readonly why: EvictionReason;
}

/** The text of Events about a pod that its kubelet would refuse now. */
export const placeLostText = (node: string): string => `node ${node} ${PLACE_LOST}: its kubelet would refuse the pod`;

/**
 * Evicts pods that were bound to a node and cannot start there, so that their owner creates others, which go elsewhere.
 * Running pods are never evicted. A failed eviction is retried with increasing pauses while the pod cannot start and
 * this replica is the active one. Namespaces take turns.
 */
export type Evictions = ReturnType<typeof createEvictions>;

export interface EvictionsOptions {
  readonly client: KubeClient;
  readonly events: EventRecorder;
  readonly policy: EvictionPolicy;
  /** Returns the current pod if it still cannot start. Called right before the eviction. */
  readonly stuck: (pod: PodView) => StuckPod | undefined;
  readonly active: () => boolean;
  readonly onAttempt: (outcome: RemovalOutcome) => void;
  readonly log: ExtenderLogger;
}

/** Milliseconds between two evictions: a rack of dead DPUs must not empty a cluster at once. */
const PACE = 1000;
const REMEMBERED = 5000;
/** Consecutive failures before the pod gets an Event: an API server may be down for a moment. */
const FAILURES_SAID = 3;

export function createEvictions(options: EvictionsOptions) {
  const { client, events, policy, stuck, active, onAttempt, log } = options;
  const queue = new FairQueue<PodView>();
  const retries = createRetries();
  const held = new BoundedMap<string, true>(REMEMBERED);
  /** Whether a turn is scheduled or in progress. */
  let running = false;
  /** The uid of the pod that is being evicted. */
  let busy: string | undefined;

  const say = ({ namespace, name, uid }: PodView, reason: string, message: string): void =>
    events.record({ apiVersion: 'v1', kind: 'Pod', namespace, name, uid }, { type: 'Warning', reason, message });

  const done = ({ pod, why }: StuckPod, how: string): void => {
    retries.forget(pod.uid);
    const { namespace, name, node } = pod;
    log.info({ pod: `${namespace}/${name}`, node, reason: why.reason, text: why.text, how }, 'pod removed');
    const note = how === 'deleted' ? ' (deleted: KubeVirt denies its eviction)' : '';
    say(pod, 'EvictedBeforeStart', `${why.text}${note}`);
  };

  const failed = ({ pod, why }: StuckPod, { outcome, error: err }: Removal): void => {
    const { uid, namespace, name, node } = pod;
    const failures = retries.failed(uid, () => enqueue(pod));
    if (outcome === 'changed') return;
    log.warn({ err, pod: `${namespace}/${name}`, node, failures }, 'pod eviction failed');
    if (failures !== FAILURES_SAID) return;
    say(pod, 'CannotEvict', `${why.text}; evicting the pod failed: ${(err as Error).message}`);
  };

  const evict = async (found: StuckPod): Promise<void> => {
    busy = found.pod.uid;
    const removal = await removePod(client, found.pod);
    busy = undefined;
    onAttempt(removal.outcome);
    const { outcome } = removal;
    if (outcome === 'evicted' || outcome === 'deleted') done(found, outcome);
    else if (outcome === 'gone') retries.forget(found.pod.uid);
    else failed(found, removal);
  };

  const next = async (): Promise<void> => {
    const pod = queue.take();
    if (pod === undefined || !active()) {
      running = false;
      queue.clear();
      return;
    }
    const found = stuck(pod);
    if (found) await evict(found);
    else retries.forget(pod.uid);
    setTimeout(() => void next(), found ? PACE : undefined).unref();
  };

  function enqueue(pod: PodView): void {
    if (!active()) {
      retries.forget(pod.uid);
      return;
    }
    if (busy === pod.uid || retries.isWaiting(pod.uid)) return;
    queue.set(pod.namespace, pod.uid, pod);
    if (running) return;
    running = true;
    setTimeout(() => void next());
  }

  return {
    consider(pod: PodView, why: EvictionReason) {
      if (policy === 'evict') return enqueue(pod);
      if (!active() || held.has(pod.uid)) return;
      held.set(pod.uid, true);
      say(pod, 'CannotStartHere', why.text);
    },
    stop() {
      retries.stop();
      queue.clear();
    },
  };
}

/** Milliseconds until the first retry; each later one waits twice as long, up to MAX_RETRY_MILLISECONDS. */
const FIRST = 1000;
const MAX_RETRY_MILLISECONDS = 60_000;
/** Maximum keys; beyond that, the one that failed longest ago is forgotten. */
const MAX_KEYS = 5000;

/** Retries failed work with increasing pauses. The number of keys and the pause are bounded. */
export function createRetries() {
  const keys = new Map<string, { readonly failures: number; timer: NodeJS.Timeout | undefined }>();
  const forget = (key: string): void => {
    clearTimeout(keys.get(key)?.timer);
    keys.delete(key);
  };
  return {
    /** Schedules a retry of the key. @returns its number of consecutive failures */
    failed(key: string, again: () => void) {
      const failures = (keys.get(key)?.failures ?? 0) + 1;
      forget(key);
      const [oldest] = keys.keys();
      if (keys.size >= MAX_KEYS && oldest !== undefined) forget(oldest);
      const wait = Math.min(MAX_RETRY_MILLISECONDS, FIRST * 2 ** (failures - 1));
      const entry: { failures: number; timer: NodeJS.Timeout | undefined } = { failures, timer: undefined };
      entry.timer = setTimeout(() => {
        entry.timer = undefined;
        again();
      }, wait).unref();
      keys.set(key, entry);
      return failures;
    },
    /** Whether the key waits for its next retry. */
    isWaiting: (key: string) => keys.get(key)?.timer !== undefined,
    forget,
    stop() {
      for (const key of [...keys.keys()]) forget(key);
    },
  };
}

export interface StuckPodsOptions {
  readonly state: Pick<ClusterState, 'startingOn' | 'hostRefusals' | 'lostPlaces'>;
  readonly isDpuHost: (node: string) => boolean;
  readonly dpuHealth: Pick<DpuHealth, 'verdict'>;
}

/** Determines whether a pod that is on a node and has not started can ever start. */
export function createStuckPods({ state, isDpuHost, dpuHealth }: StuckPodsOptions) {
  /** Why a pod cannot start on the node that it is bound to, or undefined. */
  const whyStuck = (pod: PodView): EvictionReason | undefined => {
    const node = pod.node ?? '';
    // A static pod has no owner that would create it elsewhere: its kubelet creates the mirror again.
    if (pod.kubeletUid !== pod.uid) return undefined;
    const refusal = state.hostRefusals.of(node, pod);
    if (refusal !== undefined) return { reason: 'AllocationRefused', text: `${node}: ${refusal}` };
    if (state.lostPlaces.on(node).has(pod.uid)) return { reason: 'PlaceLost', text: placeLostText(node) };
    if (!pod.needs.dpu || !isDpuHost(node)) return undefined;
    const { state: lease, age } = dpuHealth.verdict(node);
    if (lease !== 'dead') return undefined;
    const seen = age === undefined ? 'its lease was never renewed' : `last renewal ${Math.round(age)} s ago`;
    const text = `the DPU of node ${node} has died before the pod started: ${seen}`;
    return { reason: 'DPUNotReady', text };
  };

  return {
    /** The current pod and why it cannot start; undefined if it has started, or can start. */
    stuck(pod: PodView): StuckPod | undefined {
      const newest = state.startingOn(pod.node ?? '').find(({ uid }) => uid === pod.uid);
      const why = newest && whyStuck(newest);
      return newest && why && { pod: newest, why };
    },
    /** Submits a pod for eviction if it is stuck. */
    consider(pod: PodView, evictions: Evictions): void {
      const why = whyStuck(pod);
      if (why) evictions.consider(pod, why);
    },
  };
}

/**
 * - evicted, deleted: the API server accepted it.
 * - gone: the pod no longer exists.
 * - changed: the pod has changed since it was read.
 * - refused: by a disruption budget, by KubeVirt, or because the extender may not delete pods.
 * - failed: for any other reason.
 */
export type RemovalOutcome = 'evicted' | 'deleted' | 'gone' | 'changed' | 'refused' | 'failed';

export interface Removal {
  readonly outcome: RemovalOutcome;
  /** The error of a refused or failed removal. */
  readonly error?: unknown;
}

/**
 * virt-api's webhook for pods/eviction, as the API server's error names it (KubeVirt's
 * pkg/virt-operator/resource/generate/components/webhooks.go). It denies with status 429, as a disruption budget does.
 */
const INTERCEPTOR = 'admission webhook "virt-launcher-eviction-interceptor.kubevirt.io" denied the request';

/**
 * Removes a pod that has not started through the Eviction API, so that disruption budgets apply. KubeVirt denies that
 * for launchers whose VM migrates on eviction (evictionStrategy), although a guest that has never started cannot
 * migrate, and for targets of migrations. Such a launcher is deleted, if it has not changed since it was read.
 */
export async function removePod(client: KubeClient, pod: PodView): Promise<Removal> {
  const evicted = await attempt('evicted', () => evict(client, pod));
  const isDenied = evicted.error instanceof KubeError && evicted.error.message.includes(INTERCEPTOR);
  if (!isDenied || !pod.launcher || !pod.pending) return evicted;
  return attempt('deleted', () => remove(client, pod));
}

/** The precondition on the uid protects a later pod of the same name. */
function evict(client: KubeClient, { namespace, name, uid }: PodView): Promise<unknown> {
  return client.create(`/api/v1/namespaces/${namespace}/pods/${name}/eviction`, {
    apiVersion: 'policy/v1',
    kind: 'Eviction',
    metadata: { name, namespace },
    deleteOptions: { preconditions: { uid } },
  });
}

/** The precondition on the version protects a launcher that has started in the meantime. */
function remove(client: KubeClient, { namespace, name, uid, version }: PodView): Promise<unknown> {
  const preconditions = { uid, resourceVersion: version };
  return client.delete(`/api/v1/namespaces/${namespace}/pods/${name}`, {
    body: { apiVersion: 'v1', kind: 'DeleteOptions', preconditions },
  });
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
