import { MAX_CPUS } from '../cpu-ranges.ts';
import { parseQuantity } from '../quantity.ts';
import { isZeroAmount, wholeCpus } from './amounts.ts';
import type { ContainerShape, PodShape } from './shapes.ts';

/** A container for which the static CPU manager takes CPUs out of the shared pool, if its pod is Guaranteed. */
export interface IntegralContainer {
  readonly list: 'containers' | 'initContainers';
  readonly index: number;
  readonly name: string;
  /** Whole CPUs, at least 1. */
  readonly cpus: number;
}

/** Why a pod would not be Guaranteed. `container` is undefined where the pod as a whole is the reason. */
export interface QosObstacle {
  readonly container: string | undefined;
  readonly why: string;
}

/** In the order in which the kubelet admits them. */
const LISTS = ['initContainers', 'containers'] as const;

/**
 * The containers with a whole number of CPUs, init containers first as the kubelet admits them. Each is checked by
 * itself for whole cores, an init container too although its CPUs are handed on afterwards. An amount that no host has
 * (65,536 CPUs or more) is left out: such a pod starts nowhere.
 * @throws ParseError if a CPU amount is no quantity
 */
export function integralContainers(pod: PodShape): readonly IntegralContainer[] {
  const found: IntegralContainer[] = [];
  for (const list of LISTS) {
    for (const [index, container] of (pod.spec[list] ?? []).entries()) {
      const cpu = requestOf(container, 'cpu');
      const cpus = cpu === undefined ? undefined : wholeCpus(cpu);
      if (cpus === undefined || cpus < 1 || cpus >= MAX_CPUS) continue;
      found.push({ list, index, name: container.name, cpus });
    }
  }
  return found;
}

/**
 * What keeps a pod from being Guaranteed, empty if nothing does: then CPUs are exclusive. Each container must limit CPU
 * and memory and request just that much; a missing request counts as the limit, which is what the API server makes of
 * it. (Kubernetes compares sums over the pod; but KubeVirt keeps a VMI waiting unless each container is equal.)
 * @throws ParseError if an amount is no quantity
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

/** Whether the kubelet gives some container of the pod CPUs of its own. @throws ParseError as qosObstacles */
export function hasExclusiveCpus(pod: PodShape): boolean {
  return qosObstacles(pod).length === 0 && integralContainers(pod).length > 0;
}

/** Whether the pod sets resources for itself as a whole, which the static CPU manager ignores silently. */
export function hasPodLevelResources(pod: PodShape): boolean {
  const { requests, limits } = pod.spec.resources ?? {};
  return Object.keys(requests ?? {}).length + Object.keys(limits ?? {}).length > 0;
}

/** What a container requests, the limit standing in for a missing request. */
export function requestOf(container: ContainerShape, resource: string): string | undefined {
  return container.resources?.requests?.[resource] ?? container.resources?.limits?.[resource];
}

/** Whether request and limit of a resource are the same amount, in whatever form either is written. */
export function isEqualRequestAndLimit(container: ContainerShape, resource: string): boolean {
  const limit = container.resources?.limits?.[resource];
  const request = requestOf(container, resource);
  if (limit === request) return limit !== undefined;
  return limit !== undefined && request !== undefined && parseQuantity(limit).nano === parseQuantity(request).nano;
}

function obstacle(container: ContainerShape, resource: 'cpu' | 'memory'): string | undefined {
  const limit = container.resources?.limits?.[resource];
  if (limit === undefined || isZeroAmount(limit)) return `it has no ${resource} limit`;
  if (isEqualRequestAndLimit(container, resource)) return undefined;
  return `its ${resource} request ${requestOf(container, resource)} differs from its limit ${limit}`;
}
