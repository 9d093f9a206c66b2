import type { KubeClient } from '../../kube/client.ts';
import { isConflict, isNotFound } from '../../kube/errors.ts';
import type { EventRecorder } from '../../kube/events.ts';
import type { Logger } from '../../runtime/log.ts';
import type { PodView } from '../cluster/pod-view.ts';

export type EvictionPolicy = 'evict' | 'hold';

/** Why a pod that has not started cannot start where it is. */
export interface EvictionReason {
  readonly reason: 'DPUNotReady' | 'ClaimRefused';
  readonly text: string;
}

/**
 * Sends pods away that were bound to a node and cannot start there, so that their owner makes others, which go
 * elsewhere. Only pods that have not started: what runs may go on running.
 */
export interface Evictions {
  consider(pod: PodView, why: EvictionReason): void;
  stop(): void;
}

export interface EvictionsOptions {
  readonly client: KubeClient;
  readonly events: EventRecorder;
  readonly policy: EvictionPolicy;
  /** Whether it is still so, asked right before the pod is evicted. */
  readonly stillStands: (pod: PodView, why: EvictionReason) => boolean;
  readonly active: () => boolean;
  readonly log: Logger;
}

/** Milliseconds between two evictions: a rack of dead DPUs must not empty a cluster at once. */
const PACE = 1000;
const REMEMBERED = 5000;

export function createEvictions({ client, events, policy, stillStands, active, log }: EvictionsOptions): Evictions {
  const queue = new Map<string, { readonly pod: PodView; readonly why: EvictionReason }>();
  const told = new Set<string>();
  let timer: NodeJS.Timeout | undefined;

  const target = ({ namespace, name, uid }: PodView) => ({ apiVersion: 'v1', kind: 'Pod', namespace, name, uid });

  const evict = async (pod: PodView, why: EvictionReason): Promise<void> => {
    const { namespace, name, uid, node } = pod;
    // With the uid as a precondition a pod of the same name that came after is never hit.
    const body = {
      apiVersion: 'policy/v1',
      kind: 'Eviction',
      metadata: { name, namespace },
      deleteOptions: { preconditions: { uid } },
    };
    try {
      await client.create(`/api/v1/namespaces/${namespace}/pods/${name}/eviction`, body);
      log.info({ pod: `${namespace}/${name}`, node, reason: why.reason, text: why.text }, 'evicted a pod');
      events.record(target(pod), { type: 'Warning', reason: 'EvictedBeforeStart', message: why.text });
    } catch (err) {
      if (isNotFound(err) || isConflict(err)) return;
      log.warn({ err, pod: `${namespace}/${name}`, node }, 'could not evict a pod that cannot start');
    }
  };

  const next = async (): Promise<void> => {
    const [entry] = queue;
    if (entry === undefined || !active()) {
      timer = undefined;
      queue.clear();
      return;
    }
    const [uid, { pod, why }] = entry;
    queue.delete(uid);
    const stands = stillStands(pod, why);
    if (stands) await evict(pod, why);
    timer = setTimeout(() => void next(), stands ? PACE : 0);
    timer.unref();
  };

  return {
    consider(pod, why) {
      if (!active()) return;
      if (policy === 'hold') {
        if (told.has(pod.uid)) return;
        if (told.size > REMEMBERED) told.clear();
        told.add(pod.uid);
        events.record(target(pod), { type: 'Warning', reason: 'CannotStartHere', message: why.text });
        return;
      }
      queue.set(pod.uid, { pod, why });
      timer ??= setTimeout(() => void next(), 0);
    },
    stop() {
      clearTimeout(timer);
      queue.clear();
    },
  };
}
