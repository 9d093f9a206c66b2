import type { PodShape } from '../launcher/shapes.ts';
import { isNearResource, nearResource, PLACED_RESOURCE } from '../names.ts';
import type { PodCpus } from './cpus.ts';
import type { AdmittedPod, SchedulerFacts, Settings } from './facts.ts';
import type { OwnerNetworks } from './networks.ts';
import { schedulerOf } from './scheduling.ts';

export interface Preference {
  readonly pod: AdmittedPod;
  readonly cpus: Pick<PodCpus, 'exclusive' | 'amounts'>;
  readonly networks: Pick<OwnerNetworks, 'resources' | 'preferred'>;
  /** Whether the guest sees the NUMA nodes that its CPUs span. */
  readonly spansCells: boolean;
}

/**
 * The resource with which a pod makes the kubelet prefer its network, or undefined. The kubelet merges hints, and
 * contradicting hints make it assign CPUs anywhere. A pod therefore has the resource only if nothing else draws it to a
 * NUMA node (a required network, a second preferred one, a device of another plugin, memory of the guest's own NUMA
 * nodes) and only one container has exclusive CPUs.
 */
export function preferenceOf({ pod, cpus, networks, spansCells }: Preference): string | undefined {
  const [network, second] = networks.preferred;
  if (network === undefined || second !== undefined || networks.resources.length > 0) return undefined;
  if (!cpus.exclusive || cpus.amounts.length !== 1 || spansCells || hasForeignDevices(pod)) return undefined;
  return nearResource(network);
}

/**
 * Whether the pod's scheduler ignores the resource. Plumbline's scheduler is configured to ignore it. Another scheduler
 * would reject every node that lacks the resource.
 */
export function isIgnoredByScheduler(
  { spec }: Pick<AdmittedPod, 'spec'>,
  { preferredHints }: Pick<Settings, 'preferredHints'>,
  facts: SchedulerFacts,
): boolean {
  return preferredHints && facts.schedulerName !== '' && schedulerOf(spec.schedulerName, facts) === facts.schedulerName;
}

/**
 * Whether the pod requests devices of other plugins. KubeVirt's devices are on every NUMA node, and Plumbline's own are
 * counted elsewhere.
 */
function hasForeignDevices({ spec }: PodShape): boolean {
  return [...spec.containers, ...(spec.initContainers ?? [])].some(({ resources }) =>
    Object.keys(resources?.limits ?? {}).some(
      (name) =>
        name.includes('/') &&
        !name.startsWith('devices.kubevirt.io/') &&
        name !== PLACED_RESOURCE &&
        !isNearResource(name),
    ),
  );
}
