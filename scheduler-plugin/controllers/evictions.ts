import type { KubeClient } from '../../kube/client.ts';
import type { EventRecorder } from '../../kube/events.ts';
import type { Reason } from '../../model/vm-state/reasons.ts';
import type { Logger } from '../../runtime/log.ts';
import type { PodView } from '../cluster/pod-view.ts';
import { FairQueue } from './fair-queue.ts';
import { type Removal, type RemovalOutcome, removePod } from './removal.ts';
import { createRetries } from './retries.ts';

export type EvictionPolicy = 'evict' | 'hold';

/** Why a pod that has not started cannot start on its node, in the words of the table of states. */
export interface EvictionReason {
  readonly reason: Extract<Reason, 'DPUNotReady' | 'AllocationRefused' | 'PlaceLost'>;
  readonly text: string;
}

export interface StuckPod {
  readonly pod: PodView;
  readonly why: EvictionReason;
}

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
  readonly log: Logger;
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
  const held = new Set<string>();
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
      if (held.size > REMEMBERED) held.clear();
      held.add(pod.uid);
      say(pod, 'CannotStartHere', why.text);
    },
    stop() {
      retries.stop();
      queue.clear();
    },
  };
}
