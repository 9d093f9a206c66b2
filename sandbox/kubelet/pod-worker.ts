import { setTimeout as sleep } from 'node:timers/promises';
import { status } from '@grpc/grpc-js';
import type { EventText } from '../../kube/events.ts';
import { KubeletApiError } from '../../kube/kubelet-api/transport.ts';
import { formatTime } from '../../model/lease/timing.ts';
import { PODS } from '../api-server/built-in-types.ts';
import { ApiError, unlessNotFound } from '../api-server/errors.ts';
import { type LocalClient, undefinedNetwork } from '../clients/local-client.ts';
import type { KubePod } from '../objects.ts';
import {
  isReadinessStale,
  type Obstacle,
  setReady,
  setRejected,
  setRunning,
  setSucceeded,
  setWaiting,
} from './pod-status.ts';

export interface Containers {
  /** Starts the pod's containers. The pod is Running once the promise resolves. */
  start(pod: KubePod): Promise<void>;
  stop(podUID: string): Promise<void>;
}

export const NO_CONTAINERS: Containers = { start: async () => undefined, stop: async () => undefined };

interface PodWorkerDeps {
  readonly client: LocalClient;
  readonly retrySeconds: number;
  readonly preStart: (resource: string, deviceIds: readonly string[]) => Promise<void>;
  readonly containers: Pick<Containers, 'start'>;
  readonly isReady: (pod: KubePod) => boolean;
  readonly devicesOf: (uid: string, container: string) => ReadonlyMap<string, ReadonlySet<string>>;
}

/** Each step of a pod writes what the user sees: the status, and Events about failures. */
export type PodWorker = ReturnType<typeof createPodWorker>;

/** Multus creates no sandbox for a pod with an undefined network. Source: multus-cni, pkg/k8sclient/k8sclient.go */
function networkFault(client: LocalClient, pod: KubePod): Obstacle | undefined {
  const { namespace = '', name, uid = '' } = pod.metadata;
  const missing = undefinedNetwork(client, pod);
  if (missing === undefined) return undefined;
  const why = `cannot find a network-attachment-definition (${missing.name}) in namespace (${missing.namespace})`;
  const message =
    `Failed to create pod sandbox: rpc error: code = Unknown desc = failed to setup network for sandbox "${uid}": ` +
    `plugin type="multus" name="multus-cni-network" failed (add): Multus: [${namespace}/${name}/${uid}]: ${why}`;
  return { container: '', reason: '', message: '', event: { reason: 'FailedCreatePodSandBox', message } };
}

export function createPodWorker(deps: PodWorkerDeps) {
  const { client, retrySeconds, preStart, containers, isReady, devicesOf } = deps;
  const time = () => formatTime(Date.now());
  const recordEvent = (pod: KubePod, occurrence: EventText) => client.record('kubelet', pod, occurrence);

  const setStatus = async (pod: KubePod, change: (draft: KubePod) => void) => {
    const changeSamePod = (draft: KubePod) => draft.metadata.uid === pod.metadata.uid && change(draft);
    await client.edit(PODS, pod, changeSamePod, 'status').catch(unlessNotFound);
  };

  const tryStart = async (pod: KubePod): Promise<Obstacle | undefined> => {
    const networks = networkFault(client, pod);
    if (networks !== undefined) return networks;
    for (const { name } of [...(pod.spec.initContainers ?? []), ...pod.spec.containers]) {
      for (const [resource, ids] of devicesOf(pod.metadata.uid ?? '', name)) {
        try {
          await preStart(resource, [...ids]);
        } catch (error) {
          const message = `device plugin PreStartContainer rpc failed with err: ${rpcText(error)}`;
          const event = { reason: 'Failed', message: `Error: ${message}` };
          return { container: name, reason: 'CreateContainerConfigError', message, event };
        }
      }
    }
    return undefined;
  };

  return {
    async reject(pod: KubePod, reason: string, message: string) {
      await setStatus(pod, (draft) => setRejected(draft, reason, message, time()));
      await recordEvent(pod, { type: 'Warning', reason, message });
    },

    /** Starts the containers of an admitted pod; retries while a plugin refuses. */
    async start(pod: KubePod, signal: AbortSignal) {
      for (;;) {
        const obstacle = await tryStart(pod);
        if (signal.aborted) return;
        if (!obstacle) break;
        await setStatus(pod, (draft) => setWaiting(draft, obstacle, time()));
        await recordEvent(pod, { type: 'Warning', ...obstacle.event });
        await sleep(retrySeconds * 1000, undefined, { signal }).catch(() => {});
        if (signal.aborted) return;
      }
      await containers.start(pod);
      if (signal.aborted) return;
      await setStatus(pod, (draft) => setRunning(draft, time(), isReady(pod)));
      for (const { name } of pod.spec.containers) {
        await recordEvent(pod, { type: 'Normal', reason: 'Started', message: `Started container ${name}` });
      }
    },

    async refresh(pod: KubePod) {
      const ready = isReady(pod);
      if (isReadinessStale(pod, ready)) await setStatus(pod, (draft) => setReady(draft, time(), ready));
    },

    complete: (pod: KubePod) => setStatus(pod, (draft) => setSucceeded(draft, time())),

    async finish(pod: KubePod) {
      const { uid } = pod.metadata;
      try {
        await client.delete(PODS, pod, { gracePeriodSeconds: 0, ...(uid && { preconditions: { uid } }) });
      } catch (error) {
        if (!(error instanceof ApiError && error.http === 409)) throw error;
      }
    },
  };
}

/** As in Go: FailedPrecondition, and Canceled with one l. */
function goName(code: number): string {
  const words = (status[code] ?? 'UNKNOWN').toLowerCase().split('_');
  const name = words.map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join('');
  return name.replace('Cancelled', 'Canceled');
}

/** A failed call in Go's format: `rpc error: code = FailedPrecondition desc = …`. */
export function rpcText(error: unknown): string {
  const cause: { code?: unknown; details?: unknown } =
    error instanceof KubeletApiError ? Object(error.cause) : { code: 2, details: (error as Error).message };
  const code = typeof cause.code === 'number' ? cause.code : 2;
  return `rpc error: code = ${goName(code)} desc = ${String(cause.details ?? '')}`;
}
