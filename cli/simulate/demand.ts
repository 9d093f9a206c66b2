import { alignedCpus, annotatedThreadsPerCore } from '../../model/alignment.ts';
import { wantsWholeCores } from '../../model/launcher/annotation.ts';
import { launcherCpus, launcherNeeds } from '../../model/launcher/cpus.ts';
import { physnetResource, TUNNEL_RESOURCE } from '../../model/names.ts';
import type { PlacementNeeds } from '../../model/placement/needs.ts';
import { networkOfResource } from '../../model/placement/preferences.ts';
import { parseQuantity, wholeValue } from '../../model/quantity.ts';
import type { VmiShape } from '../../model/shapes.ts';

/** Equal VMs to place. */
export interface Demand {
  /** In the user's notation: `4c2t@physnet0`, or the VM's name. */
  readonly name: string;
  /** Number of VMs; undefined: as many as fit. */
  readonly count: number | undefined;
  readonly needs: PlacementNeeds;
  /** Number of exclusive CPUs of the launcher, including padding. */
  readonly cpus: number;
  /** Number of CPUs that the webhook adds to complete whole cores. */
  readonly padding: number;
}

export interface DemandRequest {
  readonly name: string;
  readonly count: number | undefined;
  readonly vmi: VmiShape;
  /** Physnets that the VM must be near; `tunnel` for the tunnel. */
  readonly networks: readonly string[];
  /** Threads per core of the nodes. */
  readonly threadsPerCore: Iterable<number>;
}

/**
 * The requests of a VM's launcher, as KubeVirt sizes it and the webhook pads it.
 * @throws ParseError if the VMI's amount of CPU or memory is not a quantity
 */
export function demandOf({ name, count, vmi, networks, threadsPerCore }: DemandRequest): Demand {
  const given = launcherCpus(vmi).total;
  const wholeCores = wantsWholeCores(vmi.metadata) && vmi.spec.domain.cpu?.isolateEmulatorThread === true;
  const cpus = wholeCores
    ? alignedCpus(Math.max(given, launcherNeeds(vmi)), annotatedThreadsPerCore(threadsPerCore))
    : given;
  const resources = networks.map((one) => (one === 'tunnel' ? TUNNEL_RESOURCE : physnetResource(one)));
  const devices = new Map(resources.map((resource) => [resource, 1]));
  const { gpus, hostDevices } = vmi.spec.domain.devices ?? {};
  for (const { deviceName } of [...(gpus ?? []), ...(hostDevices ?? [])])
    if (deviceName !== undefined) devices.set(deviceName, (devices.get(deviceName) ?? 0) + 1);
  const compute = { name: 'compute', kind: 'app', cpus, devices, memory: hugePagesOf(vmi) } as const;
  const needs: PlacementNeeds = {
    request: { uid: name, guaranteed: true, containers: [compute] },
    networks: resources
      .map((resource) => networkOfResource(resource, 'required'))
      .filter((network) => network !== undefined),
    wholeCores,
    spansCells: Boolean(vmi.spec.domain.cpu?.numa?.guestMappingPassthrough),
  };
  return { name, count, needs, cpus, padding: cpus - given };
}

/** Bytes by type: KubeVirt requests the guest's memory as huge pages (WithHugePages in renderresources.go). */
function hugePagesOf({ spec: { domain } }: VmiShape): Map<string, number> {
  const { memory, resources } = domain;
  const size = memory?.guest ?? resources?.requests?.['memory'];
  if (!memory?.hugepages?.pageSize || size === undefined) return new Map();
  return new Map([[`hugepages-${memory.hugepages.pageSize}`, wholeValue(parseQuantity(size))]]);
}
