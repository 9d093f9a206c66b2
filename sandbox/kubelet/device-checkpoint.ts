import { readFile, rename, writeFile } from 'node:fs/promises';
import { deviceCheckpoint } from '../../kube/kubelet-api/device-checkpoint.ts';
import type { DeviceAllocations } from '../../model/kubelet/devices.ts';

/** The devices of pods before the restart; empty without such a file. */
export async function readDeviceCheckpoint(path: string): Promise<DeviceAllocations> {
  const text = await readFile(path, 'utf8').catch(() => undefined);
  const pods = new Map<string, Map<string, Map<string, ReadonlySet<string>>>>();
  if (text === undefined) return pods;
  for (const entry of deviceCheckpoint.parse(JSON.parse(text)).Data.PodDeviceEntries ?? []) {
    const containers = pods.get(entry.PodUID) ?? new Map<string, Map<string, ReadonlySet<string>>>();
    const resources = containers.get(entry.ContainerName) ?? new Map<string, ReadonlySet<string>>();
    resources.set(entry.ResourceName, new Set(Object.values(entry.DeviceIDs).flat()));
    pods.set(entry.PodUID, containers.set(entry.ContainerName, resources));
  }
  return pods;
}

export async function writeDeviceCheckpoint(path: string, allocations: DeviceAllocations): Promise<void> {
  const entries = [...allocations].flatMap(([PodUID, containers]) =>
    [...containers].flatMap(([ContainerName, resources]) =>
      [...resources].map(([ResourceName, ids]) => ({
        PodUID,
        ContainerName,
        ResourceName,
        DeviceIDs: { '-1': [...ids] },
      })),
    ),
  );
  await writeFile(
    `${path}.tmp`,
    JSON.stringify({ Data: { PodDeviceEntries: entries, RegisteredDevices: {} }, Checksum: 0 }),
  );
  await rename(`${path}.tmp`, path);
}
