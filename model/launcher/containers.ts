import { MAX_CPUS } from '../cpu-set.ts';
import { type Finding, ParseError } from '../errors.ts';
import { integralCpus, milliValue, parseQuantity, wholeValue } from '../quantity.ts';
import type { ContainerShape, PodShape } from '../shapes.ts';

export interface ContainerPath {
  readonly list: 'containers' | 'initContainers';
  readonly index: number;
}

export function isAt(path: ContainerPath | undefined, { list, index }: ContainerPath): boolean {
  return path?.list === list && path.index === index;
}

export function integralAt({ integral }: PodResources, path: ContainerPath): IntegralContainer | undefined {
  return integral.find((container) => isAt(path, container));
}

/** A container with a whole number of CPUs, exclusive if its pod is Guaranteed. */
export interface IntegralContainer extends ContainerPath {
  readonly name: string;
  /** Whole CPUs, at least 1. */
  readonly cpus: number;
  /** Whether request and limit are the same amount, in any notation. */
  readonly hasEqualLimit: boolean;
}

/** `container` is undefined if the reason is the pod itself. */
interface QosObstacle {
  readonly container: string | undefined;
  readonly why: string;
}

export interface PodResources {
  /** Init containers first. */
  readonly integral: readonly IntegralContainer[];
  /**
   * Why the pod is not Guaranteed; empty if it is. Each container needs equal requests and limits of CPU and memory.
   * (Kubernetes compares sums, but KubeVirt keeps a VMI waiting unless each container is equal.)
   */
  readonly obstacles: readonly QosObstacle[];
  /** The static CPU manager ignores such a pod silently. */
  readonly isPodLevel: boolean;
  readonly exclusive: boolean;
}

const POD_LEVEL: QosObstacle = {
  container: undefined,
  why: 'it has pod-level resources, for which the static CPU manager gives no exclusive CPUs',
};

/** In the order in which the kubelet admits containers. */
const LISTS = ['initContainers', 'containers'] as const;

/** @throws ParseError if an amount is not a quantity, or if no host has so many CPUs */
export function podResourcesOf({ spec }: PodShape): PodResources {
  const containers = LISTS.flatMap((list) =>
    (spec[list] ?? []).map((container, index) => ({ list, index, container, cpu: amountsOf(container, 'cpu') })),
  );
  const integral = containers.flatMap(({ list, index, container: { name }, cpu }) => {
    const { request = '0' } = cpu;
    if (wholeValue(parseQuantity(request)) >= MAX_CPUS) {
      throw new ParseError(`CPUs of container ${name}`, request, `a host has fewer than ${MAX_CPUS}`);
    }
    const cpus = integralCpus(request) ?? 0;
    return cpus >= 1 ? [{ list, index, name, cpus, hasEqualLimit: isEqual(cpu) }] : [];
  });
  const { requests, limits } = spec.resources ?? {};
  const isPodLevel = Object.keys(requests ?? {}).length + Object.keys(limits ?? {}).length > 0;
  const obstacles = containers.flatMap(({ container, cpu }) => {
    const why = obstacle('cpu', cpu) ?? obstacle('memory', amountsOf(container, 'memory'));
    return why === undefined ? [] : [{ container: container.name, why }];
  });
  return {
    integral,
    obstacles: isPodLevel ? [POD_LEVEL] : obstacles,
    isPodLevel,
    exclusive: !isPodLevel && obstacles.length === 0 && integral.length > 0,
  };
}

interface Amounts {
  /** If it is missing, the limit. */
  readonly request: string | undefined;
  readonly limit: string | undefined;
}

function amountsOf({ resources }: ContainerShape, resource: string): Amounts {
  const limit = resources?.limits?.[resource];
  return { request: resources?.requests?.[resource] ?? limit, limit };
}

function isEqual({ request, limit }: Amounts): boolean {
  if (limit === undefined || request === undefined) return false;
  return limit === request || parseQuantity(limit).nano === parseQuantity(request).nano;
}

function obstacle(resource: string, amounts: Amounts): string | undefined {
  const { request, limit } = amounts;
  if (limit === undefined || milliValue(parseQuantity(limit)) === 0) return `it has no ${resource} limit`;
  return isEqual(amounts) ? undefined : `its ${resource} request ${request} differs from its limit ${limit}`;
}

/** With the next step. Errors: the pod would have a promise of whole cores and run on shared CPUs. */
export function obstacleFindings({ obstacles }: PodResources, what: string): readonly Finding[] {
  return obstacles.map(({ container, why }) => {
    const ofPod = `${what} gets no exclusive CPUs: ${why}. Remove spec.resources and set resources for each container`;
    if (container === undefined) return { severity: 'error', code: 'pod-level-resources', message: ofPod };
    const message = `container ${container} prevents exclusive CPUs for ${what}: ${why}. Give it CPU and memory limits, and equal requests`;
    return { severity: 'error', code: 'not-guaranteed', message };
  });
}

/** Information about differences between candidate nodes; it needs no correction. */
export function mixedFinding(candidates: readonly number[], threadsPerCore: number): readonly Finding[] {
  const kinds = [...new Set(candidates)].sort((a, b) => a - b);
  if (kinds.length < 2) return [];
  const message = `the full-pcpus-only nodes this pod can go to have ${kinds.join(' and ')} threads per core; it is aligned to ${threadsPerCore}`;
  return [{ severity: 'information', code: 'mixed-candidates', reason: 'MixedCandidates', message }];
}
