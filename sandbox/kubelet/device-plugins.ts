import { mkdir, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { Server } from '@grpc/grpc-js';
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
import { bindUnix, closeServer, SERVER_OPTIONS, unaryHandler } from '../../kube/kubelet-api/transport.ts';
import type { Device } from '../../model/kubelet/devices.ts';

interface DevicePluginsDeps {
  readonly directory: string;
  /** Called with each list of a plugin, and with all devices unhealthy when it stops. */
  readonly onDevices: (resource: string, devices: readonly Device[]) => void;
}

interface Plugin {
  readonly client: DevicePluginClient;
  readonly preStartRequired: boolean;
  readonly ended: AbortController;
}

const NO_DEADLINE_SECONDS = 24 * 3600;

export function createDevicePlugins({ directory, onDevices }: DevicePluginsDeps) {
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
    if (!ended.signal.aborted)
      onDevices(
        resource,
        devices.map((device) => ({ ...device, healthy: false })),
      );
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
