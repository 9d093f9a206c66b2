import { integralCpus, parseQuantity, wholeValue } from '../quantity.ts';
import type { ContainerShape, MetaShape, PodShape, ResourceList, Resources } from '../shapes.ts';

/** A pod, of which the kubelet's resource managers read these parts. */
export interface RequestingPod {
  readonly metadata?: Pick<MetaShape, 'uid'> | undefined;
  readonly spec?: Pick<PodShape['spec'], 'containers' | 'initContainers' | 'resources'> | undefined;
  readonly status?: Pick<NonNullable<PodShape['status']>, 'qosClass'> | undefined;
}

/**
 * `init` runs before the others, which may reuse its CPUs. `sidecar` is a restartable init container and keeps its
 * CPUs.
 */
export type ContainerKind = 'init' | 'sidecar' | 'app';

export interface ContainerRequest {
  readonly name: string;
  readonly kind: ContainerKind;
  /** Number of exclusive CPUs; 0 for the shared pool. */
  readonly cpus: number;
  /** Number of each extended resource by name, including those of device plugins. */
  readonly devices: ReadonlyMap<string, number>;
  /** `memory` and `hugepages-*` in bytes; empty unless the pod is Guaranteed. */
  readonly memory: ReadonlyMap<string, number>;
}

/** Requests of a pod to the kubelet's resource managers. Containers are in the order of admission: init, then app. */
export interface PodRequest {
  readonly uid: string;
  readonly guaranteed: boolean;
  readonly containers: readonly ContainerRequest[];
}

/**
 * Extracts the requests of a pod.
 *
 * With pod-level resources the static CPU and memory managers ignore the pod (unless PodLevelResourceManagers is on),
 * so its containers request no exclusive CPUs. A missing request of a container equals its limit, as the API server
 * would set it.
 *
 * @param uid overrides the pod's own; required for a pod that the API server has not stored yet
 * @throws ParseError if an amount is not a quantity
 * Source: pkg/kubelet/cm/cpumanager/policy_static.go, guaranteedCPUs; devicemanager/topology_hints.go.
 */
export function podRequestOf(pod: RequestingPod, uid = pod.metadata?.uid ?? ''): PodRequest {
  const guaranteed = isGuaranteed(pod);
  const exclusive = guaranteed && !hasPodLevelResources(pod);
  const request = (container: ContainerShape, kind: ContainerKind): ContainerRequest => ({
    name: container.name,
    kind,
    cpus: exclusive ? exclusiveCpus(container) : 0,
    devices: devicesOf(container),
    memory: exclusive ? memoryOf(container) : new Map<string, number>(),
  });
  const init = pod.spec?.initContainers ?? [];
  return {
    uid,
    guaranteed,
    containers: [
      ...init.map((container) => request(container, container.restartPolicy === 'Always' ? 'sidecar' : 'init')),
      ...(pod.spec?.containers ?? []).map((container) => request(container, 'app')),
    ],
  };
}

/** The same request for storage: without containers if none gets exclusive CPUs, because nothing is predicted for it. */
export function reducedRequest(request: PodRequest): PodRequest {
  return request.containers.every(({ cpus }) => cpus === 0) ? { ...request, containers: [] } : request;
}

/**
 * The largest number of exclusive CPUs that a pod has at a time. In pod scope a single hint covers so many.
 * Source: pkg/kubelet/cm/cpumanager/policy_static.go, podGuaranteedCPUs.
 */
export function podCpus(pod: PodRequest): number {
  return peakOf(pod, (container) => container.cpus);
}

/** Number of exclusive CPUs of a pod while it runs, after its init containers have ended. */
export function lastingCpus(pod: PodRequest): number {
  return pod.containers.reduce((sum, { kind, cpus }) => (kind === 'init' ? sum : sum + cpus), 0);
}

/**
 * The largest number of devices that a pod has at a time, by resource. Source:
 * pkg/kubelet/cm/devicemanager/topology_hints.go.
 */
export function podDevices(pod: PodRequest): Map<string, number> {
  const names = new Set(pod.containers.flatMap((container) => [...container.devices.keys()]));
  return new Map([...names].map((name) => [name, peakOf(pod, (container) => container.devices.get(name) ?? 0)]));
}

/**
 * The largest memory of a pod at a time, in bytes by resource. A resource that only init containers request is left
 * out, as in the kubelet.
 * Source: pkg/kubelet/cm/memorymanager/policy_static.go, getPodRequestedResources.
 */
export function podMemory(pod: PodRequest): Map<string, number> {
  const apps = pod.containers.filter((container) => container.kind === 'app');
  const names = new Set(apps.flatMap((container) => [...container.memory.keys()]));
  return new Map([...names].map((name) => [name, peakOf(pod, (container) => container.memory.get(name) ?? 0)]));
}

/**
 * The larger of: the sum of the containers that keep running; each init container together with the sidecars started
 * before it.
 */
function peakOf(pod: PodRequest, amount: (container: ContainerRequest) => number): number {
  let sidecars = 0;
  let peak = 0;
  let apps = 0;
  for (const container of pod.containers) {
    if (container.kind === 'app') apps += amount(container);
    else if (container.kind === 'sidecar') sidecars += amount(container);
    else peak = Math.max(peak, sidecars + amount(container));
  }
  return Math.max(peak, apps + sidecars);
}

/** Whether a pod sets CPU, memory or huge pages at pod level (KEP-2837, PodLevelResources). */
export function hasPodLevelResources(pod: RequestingPod): boolean {
  const { requests, limits } = pod.spec?.resources ?? {};
  const counted = (name: string) => name === 'cpu' || name === 'memory' || name.startsWith('hugepages-');
  return [...Object.keys(requests ?? {}), ...Object.keys(limits ?? {})].some(counted);
}

function exclusiveCpus({ resources }: ContainerShape): number {
  const text = resources?.requests?.['cpu'] ?? resources?.limits?.['cpu'];
  return text === undefined ? 0 : (integralCpus(text) ?? 0);
}

function memoryOf({ resources }: ContainerShape): Map<string, number> {
  const amounts = { ...resources?.limits, ...resources?.requests };
  return new Map(
    Object.entries(amounts)
      .filter(([name]) => name === 'memory' || name.startsWith('hugepages-'))
      .map(([name, text]) => [name, wholeValue(parseQuantity(text))]),
  );
}

/** The kubelet reads the limits; requests of extended resources equal them. */
function devicesOf({ resources }: ContainerShape): Map<string, number> {
  return new Map(
    Object.entries(resources?.limits ?? {})
      .filter(([name]) => name.includes('/'))
      .map(([name, text]) => [name, wholeValue(parseQuantity(text))]),
  );
}

const COUNTED = ['cpu', 'memory'] as const;

/**
 * Whether the pod's QoS class is Guaranteed: from its status, else computed as in the API server. A single container
 * whose limits of CPU and memory are missing or differ from its requests makes the whole pod Burstable.
 * @throws ParseError if an amount is not a quantity
 * Source: pkg/apis/core/v1/helper/qos/qos.go, GetPodQOS.
 */
export function isGuaranteed(pod: RequestingPod): boolean {
  const qosClass = pod.status?.qosClass;
  if (qosClass) return qosClass === 'Guaranteed';
  const podLevel = pod.spec?.resources;
  if (podLevel) return matches([withDefaults(podLevel)]);
  const containers = [...(pod.spec?.containers ?? []), ...(pod.spec?.initContainers ?? [])];
  return containers.length > 0 && matches(containers.map((container) => withDefaults(container.resources)));
}

/** Whether every part has limits of CPU and memory, and the sums of requests and limits are equal. */
function matches(parts: readonly Required<Resources>[]): boolean {
  return COUNTED.every((name) => {
    if (parts.some(({ limits }) => amount(limits, name) <= 0n)) return false;
    const sum = (lists: readonly (ResourceList | undefined)[]) =>
      lists.reduce((total, list) => total + positive(amount(list, name)), 0n);
    return sum(parts.map((part) => part.requests)) === sum(parts.map((part) => part.limits));
  });
}

/** Sets missing requests to the limits, as the API server does before it computes the class. */
function withDefaults(resources: Resources | undefined): Required<Resources> {
  return { requests: { ...resources?.limits, ...resources?.requests }, limits: resources?.limits ?? {} };
}

function amount(list: ResourceList | undefined, name: string): bigint {
  const text = list?.[name];
  return text === undefined ? 0n : parseQuantity(text).nano;
}

function positive(nano: bigint): bigint {
  return nano > 0n ? nano : 0n;
}
