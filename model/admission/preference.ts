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
 * The resource by which a pod has the kubelet prefer its network, or undefined. It is one hint among others, and where
 * hints contradict each other the kubelet gives CPUs anywhere: so a pod has it only where nothing else draws it to a NUMA
 * node (a required network, a second preferred one, a device of another plugin, memory of the guest's own NUMA nodes) and
 * one container alone has CPUs of its own.
 */
export function preferenceOf({ pod, cpus, networks, spansCells }: Preference): string | undefined {
  const [network, second] = networks.preferred;
  if (network === undefined || second !== undefined || networks.resources.length > 0) return undefined;
  if (!cpus.exclusive || cpus.amounts.length !== 1 || spansCells || hasForeignDevices(pod)) return undefined;
  return nearResource(network);
}

/**
 * Whether the pod's scheduler ignores the resource. Plumbline's own does, by its configuration; another would find no
 * node for the pod where a node lacks the resource.
 */
export function isIgnoredByScheduler(
  { spec }: Pick<AdmittedPod, 'spec'>,
  { preferredHints }: Pick<Settings, 'preferredHints'>,
  facts: SchedulerFacts,
): boolean {
  return preferredHints && facts.schedulerName !== '' && schedulerOf(spec.schedulerName, facts) === facts.schedulerName;
}

/** KubeVirt's devices are on every NUMA node, and Plumbline's own are counted elsewhere. */
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
