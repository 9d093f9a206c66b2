import type { ContainerDevices, ContainerResources, PodResources } from '../../kube/kubelet-api/gen/pod-resources.ts';

type Devices = Partial<ContainerDevices>;
type Container = Partial<Omit<ContainerResources, 'devices'>> & { readonly devices?: readonly Devices[] };
type Pod = Partial<Omit<PodResources, 'containers'>> & { readonly containers?: readonly Container[] };

const devicesOf = (devices: readonly Devices[] = []): ContainerDevices[] =>
  devices.map((device) => ({ resourceName: '', deviceIds: [], topology: undefined, ...device }));

/** A pod in an answer of PodResources, with the defaults of protobuf for absent fields. */
export function podResourcesOf({ containers = [], ...pod }: Pod): PodResources {
  return {
    name: '',
    namespace: '',
    ...pod,
    containers: containers.map(({ devices, ...container }) => ({
      name: '',
      cpuIds: [],
      memory: [],
      dynamicResources: [],
      ...container,
      devices: devicesOf(devices),
    })),
  };
}
