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
 * Finds whose devices these are. The kubelet tells a plugin nothing but device ids; it has assigned the container's CPUs
 * by then and lists both in PodResources.
 */
export function holderOf(
  pods: readonly PodResources[],
  resource: string,
  deviceIds: readonly string[],
): DeviceHolder | undefined {
  for (const { name: podName, namespace, containers } of pods) {
    for (const { name: container, devices, cpuIds } of containers) {
      const held = devices
        .filter(({ resourceName }) => resourceName === resource)
        .flatMap((device) => device.deviceIds);
      if (deviceIds.some((id) => held.includes(id))) {
        return { namespace, podName, container, cpus: CpuSet.of(cpuIds) };
      }
    }
  }
  return undefined;
}
