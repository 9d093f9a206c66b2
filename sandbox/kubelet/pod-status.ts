import { type Condition, type JsonObject, type Pod, setCondition } from '../objects.ts';

/**
 * A kubelet's changes to the status, applied to a draft of the pod. Times are RFC 3339 with a precision of one second.
 */

/** Refused at admission. This is permanent: a pod never leaves Failed. */
export function setRejected(pod: Pod, reason: string, message: string, now: string): void {
  pod.status = {
    ...pod.status,
    phase: 'Failed',
    reason,
    message: `Pod was rejected: ${message}`,
    startTime: now,
    conditions: pod.status?.conditions ?? [],
  };
}

/** Admitted, but a container cannot be created yet. */
export function setWaiting(pod: Pod, container: string, reason: string, message: string, now: string): void {
  pod.status = { ...pod.status, phase: 'Pending', startTime: pod.status?.startTime ?? now };
  const conditions = conditionsOf(pod);
  setAll(conditions, ['ContainersReady', 'Ready'], { status: 'False', reason: 'ContainersNotReady' }, now);
  pod.status.containerStatuses = pod.spec.containers.map(({ name, image = '' }) => ({
    name,
    image,
    imageID: '',
    ready: false,
    restartCount: 0,
    state: { waiting: name === container ? { reason, message } : { reason: 'ContainerCreating' } },
  }));
}

/** Every container is running. Ready also depends on the pod's readiness gates. */
export function setRunning(pod: Pod, now: string): void {
  pod.status = { ...pod.status, phase: 'Running', startTime: pod.status?.startTime ?? now };
  const conditions = conditionsOf(pod);
  setAll(conditions, ['PodReadyToStartContainers', 'Initialized', 'ContainersReady'], { status: 'True' }, now);
  setReady(pod, now);
  const running = (container: { name: string; image?: string }): JsonObject => ({
    name: container.name,
    image: container.image ?? '',
    imageID: '',
    containerID: `sandbox://${containerIdOf(pod.metadata.uid ?? '', container.name)}`,
    ready: true,
    started: true,
    restartCount: 0,
    state: { running: { startedAt: now } },
  });
  const sidecars = (pod.spec.initContainers ?? []).filter(({ restartPolicy }) => restartPolicy === 'Always');
  pod.status.containerStatuses = pod.spec.containers.map(running);
  if (sidecars.length > 0) pod.status.initContainerStatuses = sidecars.map(running);
}

/** Every container has ended with exit code 0 and will not restart. */
export function setSucceeded(pod: Pod, now: string): void {
  pod.status = { ...pod.status, phase: 'Succeeded' };
  const conditions = conditionsOf(pod);
  setAll(conditions, ['ContainersReady', 'Ready'], { status: 'False', reason: 'PodCompleted' }, now);
  for (const status of pod.status.containerStatuses ?? []) {
    status['ready'] = false;
    status['state'] = { terminated: { exitCode: 0, reason: 'Completed', finishedAt: now } };
  }
}

/** The id of a container. It is also the name of a cgroup directory, so it has no special characters. */
export function containerIdOf(podUID: string, container: string): string {
  return `${podUID}-${container}`;
}

/** Whether a running pod's Ready condition contradicts its readiness gates. */
export function isReadinessStale(pod: Pod): boolean {
  const ready = pod.status?.conditions?.find(({ type }) => type === 'Ready');
  return pod.status?.phase === 'Running' && (ready?.status === 'True') !== gatesOpen(pod);
}

export function setReady(pod: Pod, now: string): void {
  const conditions = conditionsOf(pod);
  const open = gatesOpen(pod);
  setAll(conditions, ['Ready'], open ? { status: 'True' } : { status: 'False', reason: 'ReadinessGatesNotReady' }, now);
}

function gatesOpen({ spec, status }: Pod): boolean {
  return (spec.readinessGates ?? []).every(({ conditionType }) =>
    status?.conditions?.some((condition) => condition.type === conditionType && condition.status === 'True'),
  );
}

function conditionsOf(pod: Pod): Condition[] {
  pod.status ??= {};
  pod.status.conditions ??= [];
  return pod.status.conditions;
}

function setAll(conditions: Condition[], types: readonly string[], rest: Omit<Condition, 'type'>, now: string): void {
  for (const type of types) setCondition(conditions, { type, ...rest }, now);
}
