import type * as z from 'zod';
import { DEVICE_CHECKPOINT_FILE, deviceCheckpoint } from '../../kube/kubelet-api/device-checkpoint.ts';
import type { ContainerDevices } from '../../kube/kubelet-api/gen/pod-resources.ts';
import type { NodeTopologyStatus } from '../../kube/node-topology.ts';
import { CpuSet } from '../../model/cpu-set.ts';
import { PlumblineError } from '../../model/errors.ts';
import { MAX_CELL_ID } from '../../model/host.ts';
import { isReportedResource } from '../../model/kubelet/report.ts';

export type DeviceResource = NonNullable<NodeTopologyStatus['devices']>[number];

export type ListedDevices = Pick<ContainerDevices, 'resourceName' | 'deviceIds'> & Partial<ContainerDevices>;

/** By NUMA nodes, ascending. The kubelet lists a device once for each of its NUMA nodes, and none of DRA. */
export function countDevices(
  allocatable: readonly ListedDevices[],
  inUse: readonly ListedDevices[],
): readonly DeviceResource[] {
  const nodesOf = new Map<string, Map<string, readonly number[] | undefined>>();
  for (const { resourceName, deviceIds, topology } of allocatable) {
    if (!isReportedResource(resourceName)) continue;
    const devices = nodesOf.get(resourceName) ?? new Map<string, readonly number[] | undefined>();
    nodesOf.set(resourceName, devices);
    const nodes = topology?.nodes.map(({ ID }) => ID);
    for (const id of deviceIds) {
      const before = devices.get(id);
      devices.set(id, before === undefined ? nodes : [...before, ...(nodes ?? [])]);
    }
  }
  const used = new Map<string, Set<string>>();
  for (const { resourceName, deviceIds } of inUse) {
    const ids = used.get(resourceName) ?? new Set();
    for (const id of deviceIds) ids.add(id);
    used.set(resourceName, ids);
  }
  return [...nodesOf]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([resource, devices]) => ({ resource, groups: groupByNodes(devices, used.get(resource) ?? new Set()) }));
}

/** Plugins write -1 for an unknown NUMA node: such a device has a topology, but no NUMA node. */
const cellsOf = (nodes: readonly number[]) => CpuSet.of(nodes.filter((id) => id >= 0 && id < MAX_CELL_ID)).toString();

function groupByNodes(
  devices: ReadonlyMap<string, readonly number[] | undefined>,
  used: ReadonlySet<string>,
): DeviceResource['groups'] {
  const groups = new Map<string, { cells?: string; total: number; free: number }>();
  for (const [id, nodes] of devices) {
    const cells = nodes && cellsOf(nodes);
    const group = groups.get(cells ?? 'none') ?? { ...(cells !== undefined && { cells }), total: 0, free: 0 };
    groups.set(cells ?? 'none', group);
    group.total++;
    if (!used.has(id)) group.free++;
  }
  return [...groups].sort(([a], [b]) => a.localeCompare(b, 'en', { numeric: true })).map(([, group]) => group);
}

/** The largest file that is read, in bytes. A device takes about 20, a container what its plugin answered. */
export const MAX_DEVICE_CHECKPOINT_BYTES = 4 * 1024 * 1024;

export interface PodWithDevices {
  readonly containers: readonly { readonly name: string; readonly devices: readonly ListedDevices[] }[];
}

/**
 * The devices that the kubelet keeps for pods on the node, including those of init containers that ended. A pod is on
 * the node if it owns CPUs or PodResources lists one of its devices: the file also has pods that are gone. @throws
 * PlumblineError if the file is torn or has an unknown format
 */
export function devicesOfPods(
  text: string,
  pods: readonly PodWithDevices[],
  podsWithCpus: ReadonlySet<string>,
): ListedDevices[] {
  const entries = (parse(text).Data.PodDeviceEntries ?? []).map(
    ({ PodUID, ContainerName, ResourceName, DeviceIDs }) => ({
      podUID: PodUID,
      container: ContainerName,
      resourceName: ResourceName,
      deviceIds: Object.values(DeviceIDs).flat(),
    }),
  );
  const listed = new Set(
    pods.flatMap(({ containers }) =>
      containers.flatMap(({ name, devices }) =>
        devices.flatMap(({ resourceName, deviceIds }) => deviceIds.map((id) => `${name} ${resourceName} ${id}`)),
      ),
    ),
  );
  const present = new Set(podsWithCpus);
  for (const { podUID, container, resourceName, deviceIds } of entries) {
    if (deviceIds.some((id) => listed.has(`${container} ${resourceName} ${id}`))) present.add(podUID);
  }
  return entries.filter(({ podUID }) => present.has(podUID));
}

function parse(text: string): z.infer<typeof deviceCheckpoint> {
  try {
    return deviceCheckpoint.parse(JSON.parse(text));
  } catch (cause) {
    const message = `${DEVICE_CHECKPOINT_FILE}: torn, or an unknown format`;
    throw new PlumblineError('device-checkpoint', message, { cause });
  }
}
