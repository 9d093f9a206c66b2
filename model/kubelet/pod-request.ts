import { integralCpus, parseQuantity, wholeValue } from '../quantity.ts';
import type { ContainerShape, MetaShape, PodShape, ResourceList, Resources } from '../shapes.ts';

/** The parts of a pod that the kubelet's resource managers read. */
export interface RequestingPod {
  readonly metadata?: Pick<MetaShape, 'uid'> | undefined;
  readonly spec?: Pick<PodShape['spec'], 'containers' | 'initContainers' | 'resources'> | undefined;
  readonly status?: Pick<NonNullable<PodShape['status']>, 'qosClass'> | null | undefined;
}

/** `init` runs before the others, which may reuse its CPUs. `sidecar` is restartable and keeps its CPUs. */
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

/** Containers are in the order of admission: init, then app. */
export interface PodRequest {
  readonly uid: string;
  readonly guaranteed: boolean;
  readonly containers: readonly ContainerRequest[];
}

/**
 * With pod-level resources the static managers ignore the pod (unless PodLevelResourceManagers is on). A missing
 * request equals its limit, as in the API server. @param uid for a pod that is not stored yet @throws ParseError
 * Source: pkg/kubelet/cm/cpumanager/policy_static.go, guaranteedCPUs; devicemanager/topology_hints.go.
 */
export function podRequestOf(pod: RequestingPod, uid = pod.metadata?.uid ?? ''): PodRequest {
  const guaranteed = isGuaranteed(pod);
  const exclusive = guaranteed && !hasPodLevelResources(pod);
  const request = ({ name, resources }: ContainerShape, kind: ContainerKind): ContainerRequest => ({
    name,
    kind,
    cpus: exclusive ? exclusiveCpus(resources) : 0,
    // The kubelet reads the limits; requests of extended resources equal them.
    devices: amountsOf(resources?.limits, (resource) => resource.includes('/')),
    memory: amountsOf(exclusive ? { ...resources?.limits, ...resources?.requests } : {}, isMemory),
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

/** The most at a time. Source: pkg/kubelet/cm/cpumanager/policy_static.go, podGuaranteedCPUs. */
export function podCpus(pod: PodRequest): number {
  return peakOf(pod, (container) => container.cpus);
}

/** Number of exclusive CPUs of a pod while it runs, after its init containers have ended. */
export function lastingCpus(pod: PodRequest): number {
  return pod.containers.reduce((sum, { kind, cpus }) => (kind === 'init' ? sum : sum + cpus), 0);
}

/** The most at a time, by resource. Source: pkg/kubelet/cm/devicemanager/topology_hints.go. */
export function podDevices(pod: PodRequest): Map<string, number> {
  return peaksOf(pod, pod.containers, ({ devices }) => devices);
}

/** In bytes, without resources that only init containers request. Source: memorymanager, getPodRequestedResources. */
export function podMemory(pod: PodRequest): Map<string, number> {
  const apps = pod.containers.filter(({ kind }) => kind === 'app');
  return peaksOf(pod, apps, ({ memory }) => memory);
}

function peaksOf(
  pod: PodRequest,
  naming: readonly ContainerRequest[],
  amountsOf: (container: ContainerRequest) => ReadonlyMap<string, number>,
): Map<string, number> {
  const names = new Set(naming.flatMap((container) => [...amountsOf(container).keys()]));
  return new Map([...names].map((name) => [name, peakOf(pod, (container) => amountsOf(container).get(name) ?? 0)]));
}

/** The larger of the sum that keeps running, and each init container with the sidecars before it. */
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
  return Object.keys({ ...requests, ...limits }).some((name) => name === 'cpu' || isMemory(name));
}

function exclusiveCpus(resources: Resources | undefined): number {
  const text = resources?.requests?.['cpu'] ?? resources?.limits?.['cpu'];
  return text === undefined ? 0 : (integralCpus(text) ?? 0);
}

function isMemory(name: string): boolean {
  return name === 'memory' || name.startsWith('hugepages-');
}

function amountsOf(list: ResourceList | undefined, isCounted: (name: string) => boolean): Map<string, number> {
  const entries = Object.entries(list ?? {}).filter(([name]) => isCounted(name));
  return new Map(entries.map(([name, text]) => [name, wholeValue(parseQuantity(text))]));
}

const COUNTED = ['cpu', 'memory'] as const;

/**
 * From its status, else computed: one container without equal requests and limits makes the pod Burstable.
 * Source: pkg/apis/core/v1/helper/qos/qos.go, GetPodQOS. @throws ParseError
 */
function isGuaranteed(pod: RequestingPod): boolean {
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
    const sumOf = (key: keyof Resources) => parts.reduce((sum, part) => sum + positive(amount(part[key], name)), 0n);
    return sumOf('requests') === sumOf('limits');
  });
}

/** As the API server does before it computes the class. */
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
