import { MAX_CPUS } from '../cpu-ranges.ts';
import { integralCpus, milliValue, parseQuantity } from '../quantity.ts';
import type { ContainerShape, PodShape } from '../shapes.ts';

/** A container that gets CPUs of the shared pool exclusively from the static CPU manager if its pod is Guaranteed. */
export interface IntegralContainer {
  readonly list: 'containers' | 'initContainers';
  readonly index: number;
  readonly name: string;
  /** Whole CPUs, at least 1. */
  readonly cpus: number;
}

/** Why a pod is not Guaranteed. `container` is undefined if the reason is the pod itself. */
export interface QosObstacle {
  readonly container: string | undefined;
  readonly why: string;
}

/** In the order in which the kubelet admits containers. */
const LISTS = ['initContainers', 'containers'] as const;

/**
 * The containers with a whole number of CPUs, init containers first, as the kubelet admits them. The kubelet checks
 * each separately for whole cores, including init containers, although later containers reuse their CPUs. Amounts that
 * no host has (65,536 CPUs or more) are left out: such a pod starts nowhere.
 * @throws ParseError if a CPU amount is not a quantity
 */
export function integralContainers(pod: PodShape): readonly IntegralContainer[] {
  const found: IntegralContainer[] = [];
  for (const list of LISTS) {
    for (const [index, container] of (pod.spec[list] ?? []).entries()) {
      const cpu = requestOf(container, 'cpu');
      const cpus = cpu === undefined ? undefined : integralCpus(cpu);
      if (cpus === undefined || cpus < 1 || cpus >= MAX_CPUS) continue;
      found.push({ list, index, name: container.name, cpus });
    }
  }
  return found;
}

/**
 * Why a pod is not Guaranteed; empty if it is, and its CPUs are exclusive. Each container needs limits of CPU and
 * memory and equal requests; a missing request equals the limit, as the API server sets it. (Kubernetes compares sums
 * over the pod, but KubeVirt keeps a VMI waiting unless each container is equal.)
 * @throws ParseError if an amount is not a quantity
 */
export function qosObstacles(pod: PodShape): readonly QosObstacle[] {
  if (hasPodLevelResources(pod)) {
    return [
      {
        container: undefined,
        why: 'it has pod-level resources, for which the static CPU manager gives no exclusive CPUs',
      },
    ];
  }
  const found: QosObstacle[] = [];
  for (const list of LISTS) {
    for (const container of pod.spec[list] ?? []) {
      const why = obstacle(container, 'cpu') ?? obstacle(container, 'memory');
      if (why !== undefined) found.push({ container: container.name, why });
    }
  }
  return found;
}

/** Whether some container of the pod gets exclusive CPUs. @throws ParseError as qosObstacles */
export function hasExclusiveCpus(pod: PodShape): boolean {
  return qosObstacles(pod).length === 0 && integralContainers(pod).length > 0;
}

/** Whether the pod sets resources at pod level. The static CPU manager ignores such a pod silently. */
export function hasPodLevelResources(pod: PodShape): boolean {
  const { requests, limits } = pod.spec.resources ?? {};
  return Object.keys(requests ?? {}).length + Object.keys(limits ?? {}).length > 0;
}

/** A container's request of a resource; if it is missing, the limit. */
export function requestOf(container: ContainerShape, resource: string): string | undefined {
  return container.resources?.requests?.[resource] ?? container.resources?.limits?.[resource];
}

/** Whether request and limit of a resource are the same amount, in any notation. */
export function isEqualRequestAndLimit(container: ContainerShape, resource: string): boolean {
  const limit = container.resources?.limits?.[resource];
  const request = requestOf(container, resource);
  if (limit === request) return limit !== undefined;
  return limit !== undefined && request !== undefined && parseQuantity(limit).nano === parseQuantity(request).nano;
}

function obstacle(container: ContainerShape, resource: 'cpu' | 'memory'): string | undefined {
  const limit = container.resources?.limits?.[resource];
  if (limit === undefined || milliValue(parseQuantity(limit)) === 0) return `it has no ${resource} limit`;
  if (isEqualRequestAndLimit(container, resource)) return undefined;
  return `its ${resource} request ${requestOf(container, resource)} differs from its limit ${limit}`;
}
