import type { PodResources } from '../../kube/kubelet-api/gen/pod-resources.ts';
import { CpuSet } from '../../model/cpu-set.ts';

/** The container that holds devices, and the exclusive CPUs that the kubelet gave it. */
export interface DeviceHolder {
  readonly namespace: string;
  readonly podName: string;
  readonly container: string;
  /** Empty: the container runs in the shared pool. */
  readonly cpus: CpuSet;
}

/**
 * Finds the container that holds these devices. The kubelet gives a plugin only device ids. At that point it has
 * assigned the container's CPUs and lists both in PodResources.
 */
export function holderOf(
  pods: readonly PodResources[],
  resource: string,
  deviceIds: readonly string[],
): DeviceHolder | undefined {
  const wanted = new Set(deviceIds);
  for (const { name: podName, namespace, containers } of pods) {
    for (const { name: container, devices, cpuIds } of containers) {
      const own = devices.filter(({ resourceName }) => resourceName === resource);
      if (own.some((device) => device.deviceIds.some((id) => wanted.has(id)))) {
        return { namespace, podName, container, cpus: CpuSet.of(cpuIds) };
      }
    }
  }
  return undefined;
}
