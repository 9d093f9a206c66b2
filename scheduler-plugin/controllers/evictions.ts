import { isConflict, isNotFound, type KubeClient, KubeError } from '../../kube/client.ts';
import { BoundedMap } from '../../model/bounded-map.ts';
import { PLACE_LOST } from '../../model/names.ts';
import { logFailure } from '../../runtime/log.ts';
import { WorkQueue, type WorkResult } from '../../runtime/work-queue.ts';
import type { ClusterState } from '../cluster/cluster-state.ts';
import { type DpuMonitor, lastRenewalText } from '../cluster/dpu-health.ts';
import { namesOf, type PodView } from '../cluster/pod-view.ts';
import type { ExtenderContext } from '../telemetry/context.ts';

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

/** After an eviction: a rack of dead DPUs must not empty a cluster at once. */
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
  readonly #queue: WorkQueue<PodView>;
  readonly #announced = new BoundedMap<string, true>(MAX_HOLD_EVENTS);

  constructor(options: EvictionsOptions) {
    this.#options = options;
    this.#queue = new WorkQueue({
      work: (pod, failures) => this.#tryEvict(pod, failures),
      maxConcurrent: 1,
      pauseMilliseconds: EVICTION_INTERVAL_MILLISECONDS,
      onFault: logFailure(options.log),
    });
  }

  consider(pod: PodView, why: EvictionReason): void {
    const { policy, active } = this.#options;
    if (!active()) return;
    const key = `${pod.namespace}/${pod.uid}`;
    if (policy === 'evict') {
      // A change of the pod does not cause an earlier retry.
      if (!this.#queue.isBusy(key)) this.#queue.add(key, pod);
    } else if (!this.#announced.has(pod.uid)) {
      this.#announced.set(pod.uid, true);
      this.#recordEvent(pod, 'FailedToStart', why.text);
    }
  }

  stop(): void {
    void this.#queue.stop();
  }

  async #tryEvict(pod: PodView, failures: number): Promise<WorkResult> {
    const { active, client, onAttempt } = this.#options;
    const stuck = active() ? this.#options.stuck(pod) : undefined;
    if (stuck === undefined) return 'nothing';
    const removal = await removeUnstarted(client, stuck.pod);
    const { outcome } = removal;
    onAttempt(outcome);
    if (outcome === 'gone') return 'done';
    if (outcome === 'evicted' || outcome === 'deleted') {
      this.#removed(stuck, outcome);
      return 'done';
    }
    if (outcome !== 'changed') this.#failed(stuck, removal, failures + 1);
    return 'retry';
  }

  #removed({ pod, why }: StuckPod, how: 'evicted' | 'deleted'): void {
    const note = how === 'deleted' ? ' (deleted: KubeVirt denies its eviction)' : '';
    const [event, message] = ['EvictedBeforeStart', `${why.text}${note}`];
    const fields = { ...namesOf(pod), node: pod.node, code: why.reason, event, message };
    this.#options.log.info(fields, 'pod removed');
    this.#recordEvent(pod, event, message);
  }

  #failed({ pod, why }: StuckPod, { error: err }: Removal, failures: number): void {
    this.#options.log.warn({ err, ...namesOf(pod), node: pod.node, failures }, 'pod eviction failed');
    if (failures !== FAILURES_BEFORE_EVENT) return;
    this.#recordEvent(pod, 'CannotEvict', `${why.text}; evicting the pod failed: ${(err as Error).message}`);
  }

  #recordEvent({ namespace, name, uid }: PodView, reason: string, message: string): void {
    const target = { apiVersion: 'v1', kind: 'Pod', namespace, name, uid };
    this.#options.events.record(target, { type: 'Warning', reason, message });
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
