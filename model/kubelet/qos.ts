import { parseQuantity } from '../quantity.ts';
import type { Pod, PodResources, ResourceList } from './pod-shape.ts';

const COUNTED = ['cpu', 'memory'] as const;

/**
 * Whether the pod's QoS class is Guaranteed: from its status, else computed as in the API server. A single container
 * whose limits of CPU and memory are missing or differ from its requests makes the whole pod Burstable.
 * @throws ParseError if an amount is not a quantity
 * Source: pkg/apis/core/v1/helper/qos/qos.go, GetPodQOS.
 */
export function isGuaranteed(pod: Pod): boolean {
  const known = pod.status?.qosClass;
  if (known) return known === 'Guaranteed';
  const podLevel = pod.spec?.resources;
  if (podLevel) return matches([withDefaults(podLevel)]);
  const containers = [...(pod.spec?.containers ?? []), ...(pod.spec?.initContainers ?? [])];
  return containers.length > 0 && matches(containers.map((container) => withDefaults(container.resources)));
}

/** Whether every part has limits of CPU and memory, and the sums of requests and limits are equal. */
function matches(parts: readonly Required<PodResources>[]): boolean {
  return COUNTED.every((name) => {
    if (parts.some(({ limits }) => amount(limits, name) <= 0n)) return false;
    const sum = (lists: readonly (ResourceList | undefined)[]) =>
      lists.reduce((total, list) => total + positive(amount(list, name)), 0n);
    return sum(parts.map((part) => part.requests)) === sum(parts.map((part) => part.limits));
  });
}

/** Sets missing requests to the limits, as the API server does before it computes the class. */
function withDefaults(resources: PodResources | undefined): Required<PodResources> {
  return { requests: { ...resources?.limits, ...resources?.requests }, limits: resources?.limits ?? {} };
}

function amount(list: ResourceList | undefined, name: string): bigint {
  const text = list?.[name];
  return text === undefined ? 0n : parseQuantity(text).nano;
}

function positive(nano: bigint): bigint {
  return nano > 0n ? nano : 0n;
}
