import type { EventContent } from '../clients/local-client.ts';
import { conditionsOf, type JsonRecord, type KubePod, type ObjectCondition, setCondition } from '../objects.ts';

export interface Obstacle {
  /** Empty: the pod has no sandbox. */
  readonly container: string;
  readonly reason: string;
  readonly message: string;
  readonly event: Pick<EventContent, 'reason' | 'message'>;
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

export function setWaiting(pod: KubePod, { container, reason, message }: Obstacle, now: string): void {
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

export function setSucceeded(pod: KubePod, now: string): void {
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
