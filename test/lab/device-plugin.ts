import { existsSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { Server } from '@grpc/grpc-js';
import { HEALTHY, KUBELET_SOCKET, registerPlugin } from '../../kube/kubelet-api/device-plugin-client.ts';
import { type DevicePluginServer, DevicePluginService } from '../../kube/kubelet-api/gen/device-plugin.ts';
import { unaryHandler } from '../../kube/kubelet-api/handlers.ts';
import { bindUnix, SERVER_OPTIONS } from '../../kube/kubelet-api/transport.ts';
import { sleep } from '../../runtime/time.ts';
import { TEST_RESOURCES, type TestResource } from './devices.ts';

/** Runs in the guest until it is stopped: offers the test resources to the kubelet, once there is one. */

const DIRECTORY = '/var/lib/kubelet/device-plugins';
const KUBELET = join(DIRECTORY, KUBELET_SOCKET);
const OPTIONS = { preStartRequired: false, getPreferredAllocationAvailable: false };

void main();

async function main(): Promise<void> {
  // The kubelet empties the directory before it makes its own socket: ours must come after.
  while (!existsSync(KUBELET)) await sleep(0.2);
  await Promise.all(TEST_RESOURCES.map(offer));
}

async function offer(resource: TestResource): Promise<void> {
  const endpoint = `${resource.name.replace('/', '_')}.sock`;
  const path = join(DIRECTORY, endpoint);
  const server = new Server(SERVER_OPTIONS);
  server.addService(DevicePluginService, pluginOf(resource));
  await rm(path, { force: true });
  await bindUnix(server, path);
  await registerPlugin(KUBELET, { endpoint, resourceName: resource.name, options: OPTIONS });
}

function pluginOf({ devices }: TestResource): DevicePluginServer {
  const list = devices.map(({ id, nodes }) => ({
    ID: id,
    health: HEALTHY,
    topology: nodes && { nodes: nodes.map((ID) => ({ ID })) },
  }));
  const nothing = { envs: {}, mounts: [], devices: [], annotations: {}, cdiDevices: [] };
  return {
    getDevicePluginOptions: unaryHandler(() => OPTIONS),
    listAndWatch: (call) => void call.write({ devices: list }),
    getPreferredAllocation: unaryHandler(() => ({ containerResponses: [] })),
    allocate: unaryHandler(({ containerRequests }) => ({ containerResponses: containerRequests.map(() => nothing) })),
    preStartContainer: unaryHandler(() => ({})),
  };
}
