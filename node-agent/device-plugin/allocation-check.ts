import type { PodResources } from '../../kube/kubelet-api/gen/pod-resources.ts';
import { CpuSet } from '../../model/cpu-set.ts';
import { few } from '../../model/errors.ts';
import { type Host, isWholeCores } from '../../model/host.ts';
import { physnetOfResource } from '../../model/names.ts';
import type { ListedContainer } from '../assignments/listed-containers.ts';

/** Maximum number of cores in a message, and of characters for each core. */
const MAX_NAMED_NETWORKS = 8;
const MAX_CORE_CHARACTERS = 64;

export interface Allocation {
  readonly host: Host;
  readonly resource: string;
  /** NUMA nodes of the network. Empty if unknown: the check then does not apply. */
  readonly cells: CpuSet;
  readonly cpus: CpuSet;
  /** Whether the webhook promised whole cores to the container. */
  readonly wholeCores: boolean;
  /** Whether the guest sees its NUMA nodes: then one of them must be the network's, otherwise all. */
  readonly spansCells: boolean;
}

export interface RefusedAllocation {
  readonly reason: 'NetworkElsewhere' | 'SplitCores';
  readonly message: string;
}

/** Like Nova's second claim on the compute host. A container in the shared pool runs on all NUMA nodes. */
export function checkAllocation({
  host,
  resource,
  cells,
  cpus,
  wholeCores,
  spansCells,
}: Allocation): RefusedAllocation | undefined {
  if (cpus.isEmpty) return undefined;
  const touched = CpuSet.of(host.cells.filter((cell) => cell.cpus.intersects(cpus)).map(({ id }) => id));
  const near = spansCells ? touched.intersects(cells) : touched.isSubsetOf(cells);
  if (!cells.isEmpty && !near) {
    const elsewhere = `the kubelet gave CPUs ${cpus.brief} on NUMA node ${touched.brief}`;
    return {
      reason: 'NetworkElsewhere',
      message: `${deviceNetworkText(resource)} is on NUMA node ${cells.brief}, ${elsewhere}`,
    };
  }
  if (!wholeCores || isWholeCores(host, cpus)) return undefined;
  const split = host.cores.filter((core) => core.intersects(cpus) && !core.isSubsetOf(cpus));
  const cores = few(split.map(String), MAX_NAMED_NETWORKS, MAX_CORE_CHARACTERS).join(' and ');
  const assigned = `the kubelet gave CPUs ${cpus.brief}, which split core ${cores}`;
  return {
    reason: 'SplitCores',
    message: `it needs whole cores, but ${assigned} (device of ${deviceNetworkText(resource)})`,
  };
}

export function deviceNetworkText(resource: string): string {
  const physnet = physnetOfResource(resource);
  return physnet === undefined ? 'the tunnel' : `physnet ${physnet}`;
}

export function containerNames({ namespace, podName, container }: Omit<ListedContainer, 'cpus'>) {
  return { pod: `${namespace}/${podName}`, container };
}

/** The kubelet gives a plugin only device ids; PodResources lists them with the CPUs that it has assigned. */
export function holderOf(
  pods: readonly PodResources[],
  resource: string,
  deviceIds: readonly string[],
): ListedContainer | undefined {
  const ids = new Set(deviceIds);
  for (const { name: podName, namespace, containers } of pods) {
    for (const { name: container, devices, cpuIds } of containers) {
      const devicesOfResource = devices.filter(({ resourceName }) => resourceName === resource);
      if (devicesOfResource.some((device) => device.deviceIds.some((id) => ids.has(id)))) {
        return { namespace, podName, container, cpus: CpuSet.of(cpuIds) };
      }
    }
  }
  return undefined;
}
