import { setTimeout as sleep } from 'node:timers/promises';
import { status } from '@grpc/grpc-js';
import { KubeletApiError } from '../../kube/kubelet-api/transport.ts';
import { PODS } from '../api-server/built-in-types.ts';
import { ApiError } from '../api-server/errors.ts';
import { timestamp } from '../api-server/preparation.ts';
import { type EventContent, type LocalClient, undefinedNetwork, unlessNotFound } from '../clients/local-client.ts';
import { conditionsOf, type JsonRecord, type KubePod, type ObjectCondition, setCondition } from '../objects.ts';

export interface Containers {
  /** Starts the pod's containers. The pod is Running once the promise resolves. */
  start(pod: KubePod): Promise<void>;
  stop(podUID: string): Promise<void>;
}

export const NO_CONTAINERS: Containers = {
  start: async () => undefined,
  stop: async () => undefined,
};

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

const COMPONENT = 'kubelet';

interface Obstacle {
  /** Empty: the pod has no sandbox. */
  readonly container: string;
  readonly reason: string;
  readonly message: string;
  readonly event: Pick<EventContent, 'reason' | 'message'>;
}

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
  const time = () => timestamp(Date.now());
  const recordEvent = (pod: KubePod, occurrence: EventContent) => client.record(COMPONENT, pod, occurrence);

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
          return {
            container: name,
            reason: 'CreateContainerConfigError',
            message,
            event: { reason: 'Failed', message: `Error: ${message}` },
          };
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

/** Refused at admission, permanently. @param now RFC 3339, like all times here */
export function setRejected(pod: KubePod, reason: string, message: string, now: string): void {
  pod.status = {
    ...pod.status,
    phase: 'Failed',
    reason,
    message: `Pod was rejected: ${message}`,
    startTime: now,
    conditions: pod.status?.conditions ?? [],
  };
}

function setWaiting(pod: KubePod, { container, reason, message }: Obstacle, now: string): void {
  pod.status = { ...pod.status, phase: 'Pending', startTime: pod.status?.startTime ?? now };
  const conditions = conditionsOf(pod);
  setAll(conditions, ['ContainersReady', 'Ready'], { status: 'False', reason: 'ContainersNotReady' }, now);
  pod.status.containerStatuses = pod.spec.containers.map(({ name, image = '' }) => ({
    name,
    image,
    imageID: '',
    ready: false,
    restartCount: 0,
    state: { waiting: name === container ? { reason, ...(message && { message }) } : { reason: 'ContainerCreating' } },
  }));
}

/** The stand-in has no pod network: an address for documentation, which Services accept. */
const POD_IP = '192.0.2.1';

export function setRunning(pod: KubePod, now: string, ready = true): void {
  pod.status = {
    ...pod.status,
    phase: 'Running',
    startTime: pod.status?.startTime ?? now,
    // An address that is there belongs to a process that serves it.
    podIP: pod.status?.podIP ?? POD_IP,
    podIPs: pod.status?.podIPs ?? [{ ip: POD_IP }],
  };
  const conditions = conditionsOf(pod);
  setAll(conditions, ['PodReadyToStartContainers', 'Initialized'], { status: 'True' }, now);
  const running = (container: { name: string; image?: string }): JsonRecord => ({
    name: container.name,
    image: container.image ?? '',
    imageID: '',
    containerID: `sandbox://${containerIdOf(pod.metadata.uid ?? '', container.name)}`,
    ready,
    started: true,
    restartCount: 0,
    state: { running: { startedAt: now } },
  });
  const sidecars = (pod.spec.initContainers ?? []).filter(({ restartPolicy }) => restartPolicy === 'Always');
  pod.status.containerStatuses = pod.spec.containers.map(running);
  if (sidecars.length > 0) pod.status.initContainerStatuses = sidecars.map(running);
  setReady(pod, now, ready);
}

function setSucceeded(pod: KubePod, now: string): void {
  pod.status = { ...pod.status, phase: 'Succeeded' };
  const conditions = conditionsOf(pod);
  setAll(conditions, ['ContainersReady', 'Ready'], { status: 'False', reason: 'PodCompleted' }, now);
  for (const status of pod.status.containerStatuses ?? []) {
    status['ready'] = false;
    status['state'] = { terminated: { exitCode: 0, reason: 'Completed', finishedAt: now } };
  }
}

/** It is also the name of a cgroup directory, so it has no special characters. */
export function containerIdOf(podUID: string, container: string): string {
  return `${podUID}-${container}`;
}

/** Whether a running pod's Ready condition contradicts its probes and readiness gates. */
export function isReadinessStale(pod: KubePod, containersReady = true): boolean {
  const ready = pod.status?.conditions?.find(({ type }) => type === 'Ready');
  return pod.status?.phase === 'Running' && (ready?.status === 'True') !== (containersReady && gatesOpen(pod));
}

export function setReady(pod: KubePod, now: string, containersReady = true): void {
  const conditions = conditionsOf(pod);
  const unready = { status: 'False', reason: 'ContainersNotReady' };
  const gates = gatesOpen(pod) ? { status: 'True' } : { status: 'False', reason: 'ReadinessGatesNotReady' };
  setAll(conditions, ['ContainersReady'], containersReady ? { status: 'True' } : unready, now);
  setAll(conditions, ['Ready'], containersReady ? gates : unready, now);
  for (const status of pod.status?.containerStatuses ?? []) status['ready'] = containersReady;
}

function gatesOpen({ spec, status }: KubePod): boolean {
  return (spec.readinessGates ?? []).every(({ conditionType }) =>
    status?.conditions?.some((condition) => condition.type === conditionType && condition.status === 'True'),
  );
}

function setAll(
  conditions: ObjectCondition[],
  types: readonly string[],
  rest: Omit<ObjectCondition, 'type'>,
  now: string,
): void {
  for (const type of types) setCondition(conditions, { type, ...rest }, now);
}
