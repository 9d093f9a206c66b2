import type { EventText } from '../../kube/events.ts';
import {
  type Container,
  conditionsOf,
  hasCondition,
  type JsonRecord,
  type KubePod,
  type ObjectCondition,
  setCondition,
} from '../objects.ts';

export interface Obstacle {
  /** Empty: the pod has no sandbox. */
  readonly container: string;
  readonly reason: string;
  readonly message: string;
  readonly event: Pick<EventText, 'reason' | 'message'>;
}

/** Refused at admission, permanently. @param now RFC 3339, like all times here */
export function setRejected(pod: KubePod, reason: string, message: string, now: string): void {
  const text = `Pod was rejected: ${message}`;
  const { conditions = [] } = pod.status ?? {};
  pod.status = { ...pod.status, phase: 'Failed', reason, message: text, startTime: now, conditions };
}

export function setWaiting(pod: KubePod, { container, reason, message }: Obstacle, now: string): void {
  pod.status = { ...pod.status, phase: 'Pending', startTime: pod.status?.startTime ?? now };
  setAll(pod, ['ContainersReady', 'Ready'], { status: 'False', reason: 'ContainersNotReady' }, now);
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
  setAll(pod, ['PodReadyToStartContainers', 'Initialized'], { status: 'True' }, now);
  const running = ({ name, image = '' }: Container): JsonRecord => ({
    name,
    image,
    imageID: '',
    containerID: `sandbox://${containerIdOf(pod.metadata.uid ?? '', name)}`,
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
  setAll(pod, ['ContainersReady', 'Ready'], { status: 'False', reason: 'PodCompleted' }, now);
  for (const status of pod.status.containerStatuses ?? []) {
    status['ready'] = false;
    status['state'] = { terminated: { exitCode: 0, reason: 'Completed', finishedAt: now } };
  }
}

/** It is also the name of a cgroup directory, so it has no special characters. */
export function containerIdOf(podUID: string, container: string): string {
  return `${podUID}-${container}`;
}

const gatesOpen = (pod: KubePod) =>
  (pod.spec.readinessGates ?? []).every(({ conditionType }) => hasCondition(pod, conditionType, 'True'));

/** Whether a running pod's Ready condition contradicts its probes and readiness gates. */
export function isReadinessStale(pod: KubePod, containersReady = true): boolean {
  return pod.status?.phase === 'Running' && hasCondition(pod, 'Ready', 'True') !== (containersReady && gatesOpen(pod));
}

export function setReady(pod: KubePod, now: string, containersReady = true): void {
  const unready = { status: 'False', reason: 'ContainersNotReady' };
  const gates = gatesOpen(pod) ? { status: 'True' } : { status: 'False', reason: 'ReadinessGatesNotReady' };
  setAll(pod, ['ContainersReady'], containersReady ? { status: 'True' } : unready, now);
  setAll(pod, ['Ready'], containersReady ? gates : unready, now);
  for (const status of pod.status?.containerStatuses ?? []) status['ready'] = containersReady;
}

/** Sets conditions of these types, which are the same otherwise. */
function setAll(pod: KubePod, types: readonly string[], condition: Omit<ObjectCondition, 'type'>, now: string): void {
  for (const type of types) setCondition(conditionsOf(pod), { type, ...condition }, now);
}
