import type * as z from 'zod';
import { DEVICE_CHECKPOINT_FILE, deviceCheckpoint } from '../../kube/kubelet-api/device-plugin-client.ts';
import { PlumblineError } from '../../model/errors.ts';
import type { ListedDevices } from './devices.ts';

/** The largest file that is read, in bytes. A device takes about 20, a container what its plugin answered. */
export const MAX_DEVICE_CHECKPOINT_BYTES = 4 * 1024 * 1024;

/** A pod as PodResources lists it, with the fields that the agent reads. */
export interface PodWithDevices {
  readonly containers: readonly { readonly name: string; readonly devices: readonly ListedDevices[] }[];
}

/**
 * The devices that the kubelet keeps for the pods of the node, which include those of init containers that ended:
 * PodResources does not list these. The file also has the devices of pods that are gone, until the kubelet next
 * allocates one. A pod is on the node if it owns CPUs or PodResources lists one of its devices.
 * @param podsWithCpus uids of the pods that own CPUs
 * @throws PlumblineError if the file is torn or has an unknown format
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
