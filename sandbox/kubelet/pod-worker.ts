import { setTimeout as sleep } from 'node:timers/promises';
import { status } from '@grpc/grpc-js';
import { KubeletApiError } from '../../kube/kubelet-api/errors.ts';
import { PODS } from '../api-server/built-in-types.ts';
import { ApiError } from '../api-server/errors.ts';
import { timestamp } from '../api-server/preparation.ts';
import type { LocalClient, Occurrence } from '../clients/local-client.ts';
import type { Pod } from '../objects.ts';
import { isReadinessStale, setReady, setRejected, setRunning, setSucceeded, setWaiting } from './pod-status.ts';

/** Runs the containers of a node's pods. */
export interface Containers {
  /** Starts the pod's containers. The pod is Running once the promise resolves. */
  start(pod: Pod): Promise<void>;
  stop(podUID: string): Promise<void>;
}

/** Containers that run nothing. */
export const NO_CONTAINERS: Containers = {
  start: async () => undefined,
  stop: async () => undefined,
};

/** The parts of the kubelet that a pod's lifecycle needs. */
export interface PodWorkerDeps {
  readonly client: LocalClient;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  /** Seconds between attempts to create a container. */
  readonly retrySeconds: number;
  /** Calls PreStartContainer of a resource's plugin. @throws KubeletApiError */
  readonly preStart: (resource: string, deviceIds: readonly string[]) => Promise<void>;
  readonly containers: Pick<Containers, 'start'>;
  /** The devices of a container, by resource. */
  readonly devicesOf: (uid: string, container: string) => ReadonlyMap<string, ReadonlySet<string>>;
}

/** The steps of a pod on its node. Each writes what the user sees: the status, and Events about failures. */
export type PodWorker = ReturnType<typeof createPodWorker>;

const COMPONENT = 'kubelet';

export function createPodWorker(deps: PodWorkerDeps) {
  const { client, now, retrySeconds, preStart, containers, devicesOf } = deps;
  const time = () => timestamp(now());
  const tell = (pod: Pod, occurrence: Occurrence) => client.record(COMPONENT, pod, occurrence);

  /** A pod that was deleted in the meantime needs no status. */
  const setStatus = async (pod: Pod, change: (draft: Pod) => void) => {
    try {
      await client.edit(PODS, pod, (draft) => draft.metadata.uid === pod.metadata.uid && change(draft), 'status');
    } catch (error) {
      if (!(error instanceof ApiError && error.http === 404)) throw error;
    }
  };

  /** Starts every container in order until a plugin refuses one; returns that refusal. */
  const tryStart = async (pod: Pod): Promise<{ container: string; message: string } | undefined> => {
    for (const { name } of [...(pod.spec.initContainers ?? []), ...pod.spec.containers]) {
      for (const [resource, ids] of devicesOf(pod.metadata.uid ?? '', name)) {
        try {
          await preStart(resource, [...ids]);
        } catch (error) {
          const message = `device plugin PreStartContainer rpc failed with err: ${rpcText(error)}`;
          return { container: name, message };
        }
      }
    }
    return undefined;
  };

  return {
    /** Fails the pod permanently, with a message for its owner. */
    async reject(pod: Pod, reason: string, message: string) {
      await setStatus(pod, (draft) => setRejected(draft, reason, message, time()));
      await tell(pod, { type: 'Warning', reason, message });
    },

    /** Starts the containers of an admitted pod; retries while a plugin refuses. */
    async start(pod: Pod, signal: AbortSignal) {
      for (;;) {
        const obstacle = await tryStart(pod);
        if (signal.aborted) return;
        if (!obstacle) break;
        const { container, message } = obstacle;
        await setStatus(pod, (draft) => setWaiting(draft, container, 'CreateContainerConfigError', message, time()));
        await tell(pod, { type: 'Warning', reason: 'Failed', message: `Error: ${message}` });
        await sleep(retrySeconds * 1000, undefined, { signal }).catch(() => {});
        if (signal.aborted) return;
      }
      await containers.start(pod);
      if (signal.aborted) return;
      await setStatus(pod, (draft) => setRunning(draft, time()));
      for (const { name } of pod.spec.containers) {
        await tell(pod, { type: 'Normal', reason: 'Started', message: `Started container ${name}` });
      }
    },

    /** Updates the Ready condition according to the readiness gates. */
    async refresh(pod: Pod) {
      if (isReadinessStale(pod)) await setStatus(pod, (draft) => setReady(draft, time()));
    },

    /** Reports that the pod's containers have ended without an error. */
    complete: (pod: Pod) => setStatus(pod, (draft) => setSucceeded(draft, time())),

    /** Deletes the object of a pod that has ended on this node. */
    async finish(pod: Pod) {
      const { uid } = pod.metadata;
      try {
        await client.delete(PODS, pod, { gracePeriodSeconds: 0, ...(uid && { preconditions: { uid } }) });
      } catch (error) {
        // Another pod has the name by now.
        if (!(error instanceof ApiError && error.http === 409)) throw error;
      }
    },
  };
}

/** The name of a gRPC status code in Go: FailedPrecondition, and Canceled with one l. */
function goName(code: number): string {
  const words = (status[code] ?? 'UNKNOWN').toLowerCase().split('_');
  return words
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
    .join('')
    .replace('Cancelled', 'Canceled');
}

/** A failed call in Go's format: `rpc error: code = FailedPrecondition desc = …`. */
export function rpcText(error: unknown): string {
  const cause: { code?: unknown; details?: unknown } =
    error instanceof KubeletApiError ? Object(error.cause) : { code: 2, details: (error as Error).message };
  const code = typeof cause.code === 'number' ? cause.code : 2;
  return `rpc error: code = ${goName(code)} desc = ${String(cause.details ?? '')}`;
}
