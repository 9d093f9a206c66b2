import type { PodResources } from '../../kube/kubelet-api/gen/pod-resources.ts';
import type { PodResourcesClient } from '../../kube/kubelet-api/pod-resources-client.ts';
import { CpuSet } from '../../model/cpu-set.ts';
import type { BeforeStart } from './plugin-server.ts';

/** Seconds for the kubelet to say whose the devices are. */
const ASK_DEADLINE = 2;

export interface BeforeStartDeps {
  readonly podResources: Pick<PodResourcesClient, 'list'>;
  /** Every CPU that is known to be owned: what is vacated when it cannot be told which are this container's. */
  readonly owned: () => CpuSet;
  /** Returns when Open vSwitch is off the CPUs. */
  readonly vacate: (cpus: CpuSet, signal: AbortSignal) => Promise<void>;
}

/**
 * The barrier before a container with one of our devices is created. The kubelet has assigned its CPUs by now and says
 * so in PodResources, where the device ids tell which container it is.
 */
export function createBeforeStart({ podResources, owned, vacate }: BeforeStartDeps): BeforeStart {
  return async (resource, deviceIds, signal) => {
    const found = await podResources
      .list({ signal, deadlineSeconds: ASK_DEADLINE })
      .then((pods) => cpusOfDevices(pods, resource, deviceIds))
      .catch(() => undefined);
    await vacate(found ?? owned(), signal);
  };
}

/** The exclusive CPUs of the container that holds the devices, or undefined if none is listed with them. */
export function cpusOfDevices(
  pods: readonly PodResources[],
  resource: string,
  deviceIds: readonly string[],
): CpuSet | undefined {
  for (const { containers } of pods) {
    for (const { devices, cpuIds } of containers) {
      const held = devices
        .filter(({ resourceName }) => resourceName === resource)
        .flatMap((device) => device.deviceIds);
      if (deviceIds.some((id) => held.includes(id))) return CpuSet.of(cpuIds);
    }
  }
  return undefined;
}
