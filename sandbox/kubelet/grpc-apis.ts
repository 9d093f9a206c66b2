import { mkdir, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { Server, status } from '@grpc/grpc-js';
import { DEVICE_CHECKPOINT_FILE } from '../../kube/kubelet-api/device-checkpoint.ts';
import {
  createDevicePluginClient,
  type DevicePluginClient,
  HEALTHY,
  KUBELET_SOCKET,
  PRE_START_DEADLINE_SECONDS,
} from '../../kube/kubelet-api/device-plugin-client.ts';
import {
  type RegisterRequest,
  type RegistrationServer,
  RegistrationService,
} from '../../kube/kubelet-api/gen/device-plugin.ts';
import {
  type ContainerDevices,
  type ContainerResources,
  type PodResources,
  type PodResourcesListerServer,
  PodResourcesListerService,
} from '../../kube/kubelet-api/gen/pod-resources.ts';
import { bindUnix, closeServer, RpcError, SERVER_OPTIONS, unaryHandler } from '../../kube/kubelet-api/transport.ts';
import type { CpuSet } from '../../model/cpu-set.ts';
import type { Device } from '../../model/kubelet/devices.ts';
import type { KubeletState } from '../../model/kubelet/state.ts';
import type { KubePod } from '../objects.ts';

interface PodResourcesDeps {
  readonly directory: string;
  readonly pods: () => Iterable<KubePod>;
  readonly state: () => KubeletState;
  /** The CPUs that the CPU manager can assign; empty under policy none. */
  readonly allocatableCpus: CpuSet;
}

/** Serves PodResources v1: the CPUs and devices of each container. */
export function createPodResources({ directory, pods, state, allocatableCpus }: PodResourcesDeps) {
  const socket = join(directory, 'kubelet.sock');
  let server: Server | undefined;

  const lister: PodResourcesListerServer = {
    list: unaryHandler(() => ({ podResources: [...pods()].map((pod) => describePod(pod, state())) })),
    getAllocatableResources: unaryHandler(() => {
      const devices = [...state().pools].flatMap(([resource, pool]) => {
        const healthy = pool.devices.filter((device) => device.healthy);
        // Once for each NUMA node of a device; a device whose topology names none is not listed.
        return healthy.flatMap(({ id, nodes }) => {
          const single = nodes?.map((node) => [node]) ?? [undefined];
          return single.map((node) => containerDevices(resource, [id], node));
        });
      });
      return { devices, cpuIds: allocatableCpus.toArray(), memory: [] };
    }),
    get: unaryHandler(() => {
      throw new RpcError(status.UNIMPLEMENTED, 'the agent uses List');
    }),
  };
  return {
    async start(): Promise<void> {
      await mkdir(directory, { recursive: true });
      await rm(socket, { force: true });
      server = new Server(SERVER_OPTIONS);
      server.addService(PodResourcesListerService, lister);
      await bindUnix(server, socket);
    },
    async stop(): Promise<void> {
      if (server) await closeServer(server, 0.1);
      await rm(socket, { force: true });
    },
  };
}

/** Init containers that end are not listed; restartable ones are. */
function describePod(pod: KubePod, state: KubeletState): PodResources {
  const { uid = '', name, namespace = '' } = pod.metadata;
  const sidecars = (pod.spec.initContainers ?? []).filter(({ restartPolicy }) => restartPolicy === 'Always');
  const containers = [...sidecars, ...pod.spec.containers].map((container): ContainerResources => {
    const devices = state.devices.get(uid)?.get(container.name) ?? new Map<string, ReadonlySet<string>>();
    return {
      name: container.name,
      cpuIds: state.assignments.get(uid)?.get(container.name)?.toArray() ?? [],
      devices: [...devices].map(([resource, ids]) => {
        const pool = state.pools.get(resource)?.devices ?? [];
        const nodes = pool.filter((device) => ids.has(device.id)).flatMap((device) => device.nodes ?? []);
        return containerDevices(resource, [...ids], nodes.length > 0 ? nodes : undefined);
      }),
      memory: [],
      dynamicResources: [],
    };
  });
  return { name, namespace, containers };
}

function containerDevices(resourceName: string, deviceIds: string[], nodes?: readonly number[]): ContainerDevices {
  const topology = nodes && { nodes: [...new Set(nodes)].map((ID) => ({ ID })) };
  return { resourceName, deviceIds, topology };
}

interface Plugin {
  readonly client: DevicePluginClient;
  readonly preStartRequired: boolean;
  readonly ended: AbortController;
}

const NO_DEADLINE_SECONDS = 24 * 3600;

/** @param onDevices called with each list of a plugin, and with all devices unhealthy when it stops */
export function createDevicePlugins(
  directory: string,
  onDevices: (resource: string, devices: readonly Device[]) => void,
) {
  const plugins = new Map<string, Plugin>();
  let server: Server | undefined;

  const watch = async (resource: string, { client, ended }: Plugin) => {
    let devices: Device[] = [];
    try {
      for await (const list of client.listAndWatch(ended.signal)) {
        devices = list.map(({ ID, health, topology }) => ({
          id: ID,
          healthy: health === HEALTHY,
          ...(topology && { nodes: topology.nodes.map((node) => node.ID) }),
        }));
        onDevices(resource, devices);
      }
    } catch {
      // The plugin has stopped. Its devices stay registered and count as unhealthy until it registers again.
    }
    const unhealthy = devices.map((device) => ({ ...device, healthy: false }));
    if (!ended.signal.aborted) onDevices(resource, unhealthy);
    client.close();
  };

  const register = ({ endpoint, resourceName, options }: RegisterRequest) => {
    plugins.get(resourceName)?.ended.abort();
    const plugin: Plugin = {
      client: createDevicePluginClient(join(directory, endpoint)),
      preStartRequired: options?.preStartRequired ?? false,
      ended: new AbortController(),
    };
    plugins.set(resourceName, plugin);
    void watch(resourceName, plugin);
    return {};
  };

  return {
    /** Removes old sockets from the directory and opens the registration socket, so that plugins register again. */
    async start() {
      await mkdir(directory, { recursive: true });
      for (const name of await readdir(directory)) {
        if (name !== DEVICE_CHECKPOINT_FILE) await rm(join(directory, name), { recursive: true, force: true });
      }
      server = new Server(SERVER_OPTIONS);
      const registration: RegistrationServer = { register: unaryHandler(register) };
      server.addService(RegistrationService, registration);
      await bindUnix(server, join(directory, KUBELET_SOCKET));
    },
    async stop() {
      for (const { ended, client } of plugins.values()) {
        ended.abort();
        client.close();
      }
      plugins.clear();
      if (server) await closeServer(server, 0.1);
      await rm(join(directory, KUBELET_SOCKET), { force: true });
    },
    /** Calls Allocate of a plugin for a container. As in the kubelet there is no deadline. @throws KubeletApiError */
    async allocate(resource: string, deviceIds: readonly string[]) {
      const plugin = plugins.get(resource);
      if (!plugin) return;
      await plugin.client.allocate([deviceIds], { deadlineSeconds: NO_DEADLINE_SECONDS, signal: plugin.ended.signal });
    },
    /** Calls PreStartContainer of a plugin that requires it, for at most 30 s. @throws KubeletApiError */
    async preStart(resource: string, deviceIds: readonly string[]) {
      const plugin = plugins.get(resource);
      if (!plugin?.preStartRequired) return;
      const limits = { deadlineSeconds: PRE_START_DEADLINE_SECONDS, signal: plugin.ended.signal };
      await plugin.client.preStartContainer(deviceIds, limits);
    },
  };
}
