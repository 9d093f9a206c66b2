import type * as z from 'zod';
import { DEVICE_CHECKPOINT_FILE, deviceCheckpoint } from '../../kube/kubelet-api/device-checkpoint.ts';
import type { ContainerDevices, PodResources } from '../../kube/kubelet-api/gen/pod-resources.ts';
import type { NodeTopologyStatus } from '../../kube/node-topology.ts';
import { CpuSet } from '../../model/cpu-set.ts';
import { PlumblineError } from '../../model/errors.ts';
import { MAX_CELL_ID } from '../../model/host.ts';
import { isReportedResource } from '../../model/kubelet/report.ts';
import { byText, groupBy } from '../../model/lists.ts';

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
  const usedOf = groupBy(inUse, ({ resourceName }) => resourceName);
  return [...nodesOf].sort(byText(([resource]) => resource)).map(([resource, devices]) => {
    const used = new Set(usedOf.get(resource)?.flatMap(({ deviceIds }) => deviceIds));
    return { resource, groups: groupByNodes(devices, used) };
  });
}

/** Plugins write -1 for an unknown NUMA node: such a device has a topology, but no NUMA node. */
const cellsOf = (nodes: readonly number[]) => CpuSet.of(nodes.filter((id) => id >= 0 && id < MAX_CELL_ID)).toString();

function groupByNodes(devices: ReadonlyMap<string, readonly number[] | undefined>, used: ReadonlySet<string>) {
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

/**
 * The devices that the kubelet keeps for pods on the node, including those of init containers that ended. A pod is on
 * the node if it owns CPUs or PodResources lists one of its devices: the file also has pods that are gone. @throws
 * PlumblineError if the file is torn or has an unknown format
 */
export function devicesOfPods(
  text: string,
  pods: readonly PodResources[],
  podsWithCpus: ReadonlySet<string>,
): ListedDevices[] {
  const entries = (parse(text).Data.PodDeviceEntries ?? []).map((entry) => {
    const { PodUID: podUID, ContainerName: container, ResourceName: resourceName, DeviceIDs } = entry;
    return { podUID, container, resourceName, deviceIds: Object.values(DeviceIDs).flat() };
  });
  const keysOf = (container: string, { resourceName, deviceIds }: ListedDevices) =>
    deviceIds.map((id) => `${container} ${resourceName} ${id}`);
  const containers = pods.flatMap((pod) => pod.containers);
  const listed = new Set(
    containers.flatMap(({ name, devices }) => devices.flatMap((ofResource) => keysOf(name, ofResource))),
  );
  const present = new Set(podsWithCpus);
  for (const entry of entries)
    if (keysOf(entry.container, entry).some((key) => listed.has(key))) present.add(entry.podUID);
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
