import { integralCpus, parseQuantity, wholeValue } from '../quantity.ts';
import type { Pod, PodContainer } from './pod-shape.ts';
import { isGuaranteed } from './qos.ts';

/** `init` runs before the others and hands its CPUs on; `sidecar` is a restartable init container and keeps them. */
export type ContainerKind = 'init' | 'sidecar' | 'app';

export interface ContainerRequest {
  readonly name: string;
  readonly kind: ContainerKind;
  /** Exclusive CPUs; 0 for the shared pool. */
  readonly cpus: number;
  /** Extended resources by name, those of device plugins among them. */
  readonly devices: ReadonlyMap<string, number>;
  /** `memory` and `hugepages-*` in bytes; empty unless the pod is Guaranteed. */
  readonly memory: ReadonlyMap<string, number>;
}

/** What a pod asks of the kubelet's resource managers. Containers stand in the order of admission: init, then app. */
export interface PodRequest {
  readonly uid: string;
  readonly guaranteed: boolean;
  readonly containers: readonly ContainerRequest[];
}

/**
 * Reads what a pod asks for.
 *
 * With pod-level resources the static CPU and memory managers pass the pod by (unless PodLevelResourceManagers is on),
 * so its containers ask for no exclusive CPUs; a request that a container leaves out is its limit, as the API server
 * would have filled in.
 *
 * @param uid overrides the pod's own; needed for a pod that the API server has not stored yet
 * @throws ParseError if an amount is no quantity
 * Source: pkg/kubelet/cm/cpumanager/policy_static.go, guaranteedCPUs; devicemanager/topology_hints.go.
 */
export function podRequestOf(pod: Pod, uid = pod.metadata?.uid ?? ''): PodRequest {
  const guaranteed = isGuaranteed(pod);
  const exclusive = guaranteed && !hasPodLevelResources(pod);
  const request = (container: PodContainer, kind: ContainerKind): ContainerRequest => ({
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

/** Containers of a pod that are counted one by one. Real pods have a few; a tenant may make one of thousands. */
export const MAX_CONTAINERS = 128;

/**
 * The same request with a bounded number of containers, to be kept: without exclusive CPUs none is needed, since nothing
 * is predicted for it; of too many, the rest is one container of each kind that asks for all of theirs.
 */
export function reducedRequest(request: PodRequest): PodRequest {
  const { containers } = request;
  if (containers.every(({ cpus }) => cpus === 0)) return { ...request, containers: [] };
  if (containers.length <= MAX_CONTAINERS) return request;
  const kept = containers.slice(0, MAX_CONTAINERS);
  const rest = containers.slice(MAX_CONTAINERS);
  const kinds: readonly ContainerKind[] = ['init', 'sidecar', 'app'];
  const sums = kinds.flatMap((kind) => {
    const those = rest.filter((container) => container.kind === kind);
    return those.length === 0 ? [] : [sumOf(kind, those)];
  });
  return { ...request, containers: [...kept, ...sums] };
}

/** Init containers run one after the other: of them the largest counts. */
function sumOf(kind: ContainerKind, containers: readonly ContainerRequest[]): ContainerRequest {
  const add = kind === 'init' ? Math.max : (a: number, b: number) => a + b;
  const amounts = (of: (container: ContainerRequest) => ReadonlyMap<string, number>) => {
    const sum = new Map<string, number>();
    for (const container of containers) {
      for (const [name, amount] of of(container)) sum.set(name, add(sum.get(name) ?? 0, amount));
    }
    return sum;
  };
  return {
    name: `${containers.length} more`,
    kind,
    cpus: containers.reduce((sum, { cpus }) => add(sum, cpus), 0),
    devices: amounts(({ devices }) => devices),
    memory: amounts(({ memory }) => memory),
  };
}

/**
 * The exclusive CPUs of a whole pod at its busiest: pod scope asks for one hint for so many.
 * Source: pkg/kubelet/cm/cpumanager/policy_static.go, podGuaranteedCPUs.
 */
export function podCpus(pod: PodRequest): number {
  return peakOf(pod, (container) => container.cpus);
}

/** The exclusive CPUs that a pod holds while it runs: init containers have ended then. */
export function lastingCpus(pod: PodRequest): number {
  return pod.containers.reduce((sum, { kind, cpus }) => (kind === 'init' ? sum : sum + cpus), 0);
}

/** The devices of a whole pod at its busiest, by resource. Source: pkg/kubelet/cm/devicemanager/topology_hints.go. */
export function podDevices(pod: PodRequest): Map<string, number> {
  const names = new Set(pod.containers.flatMap((container) => [...container.devices.keys()]));
  return new Map([...names].map((name) => [name, peakOf(pod, (container) => container.devices.get(name) ?? 0)]));
}

/**
 * The memory of a whole pod at its busiest. A resource that only init containers ask for is left out, as the kubelet
 * leaves it out. Source: pkg/kubelet/cm/memorymanager/policy_static.go, getPodRequestedResources.
 */
export function podMemory(pod: PodRequest): Map<string, number> {
  const apps = pod.containers.filter((container) => container.kind === 'app');
  const names = new Set(apps.flatMap((container) => [...container.memory.keys()]));
  return new Map([...names].map((name) => [name, peakOf(pod, (container) => container.memory.get(name) ?? 0)]));
}

/**
 * The larger of the sum of containers that keep running, and each init container together with the sidecars started
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

/** Whether a pod sets CPU, memory or huge pages for itself as a whole (KEP-2837, PodLevelResources). */
export function hasPodLevelResources(pod: Pod): boolean {
  const { requests, limits } = pod.spec?.resources ?? {};
  const counted = (name: string) => name === 'cpu' || name === 'memory' || name.startsWith('hugepages-');
  return [...Object.keys(requests ?? {}), ...Object.keys(limits ?? {})].some(counted);
}

function exclusiveCpus({ resources }: PodContainer): number {
  const text = resources?.requests?.['cpu'] ?? resources?.limits?.['cpu'];
  return text === undefined ? 0 : (integralCpus(text) ?? 0);
}

function memoryOf({ resources }: PodContainer): Map<string, number> {
  const amounts = { ...resources?.limits, ...resources?.requests };
  return new Map(
    Object.entries(amounts)
      .filter(([name]) => name === 'memory' || name.startsWith('hugepages-'))
      .map(([name, text]) => [name, wholeValue(parseQuantity(text))]),
  );
}

/** Requests of extended resources equal their limits, and the kubelet reads the limits. */
function devicesOf({ resources }: PodContainer): Map<string, number> {
  return new Map(
    Object.entries(resources?.limits ?? {})
      .filter(([name]) => name.includes('/'))
      .map(([name, text]) => [name, wholeValue(parseQuantity(text))]),
  );
}
