import { rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { Server } from '@grpc/grpc-js';
import { HEALTHY, KUBELET_SOCKET, registerPlugin } from '../../kube/kubelet-api/device-plugin-client.ts';
import { type DevicePluginServer, DevicePluginService } from '../../kube/kubelet-api/gen/device-plugin.ts';
import { unaryHandler } from '../../kube/kubelet-api/handlers.ts';
import { bindUnix, closeServer, SERVER_OPTIONS } from '../../kube/kubelet-api/transport.ts';
import { sleep } from '../../runtime/time.ts';
import { TEST_RESOURCES, type TestResource } from './devices.ts';

/** Runs in the guest until it is killed: offers the test resources to each kubelet that appears. */

const DIRECTORY = '/var/lib/kubelet/device-plugins';
const KUBELET = join(DIRECTORY, KUBELET_SOCKET);
const OPTIONS = { preStartRequired: false, getPreferredAllocationAvailable: false };
/** Seconds between two looks for a new kubelet. */
const LOOK = 0.2;

void main();

async function main(): Promise<never> {
  let known = '';
  let servers: Server[] = [];
  for (;;) {
    const found = await generation();
    if (found !== known) {
      await Promise.all(servers.map((server) => closeServer(server, 0.1)));
      servers = [];
      if (found !== '') servers = await Promise.all(TEST_RESOURCES.map(offer));
      known = found;
    }
    await sleep(LOOK);
  }
}

/** Tells one kubelet's registration socket from the next one's. */
async function generation(): Promise<string> {
  const found = await stat(KUBELET).catch(() => undefined);
  return found === undefined ? '' : `${found.ino}:${found.ctimeMs}`;
}

async function offer(resource: TestResource): Promise<Server> {
  const endpoint = `${resource.name.replace('/', '_')}.sock`;
  const path = join(DIRECTORY, endpoint);
  const server = new Server(SERVER_OPTIONS);
  server.addService(DevicePluginService, pluginOf(resource));
  await rm(path, { force: true });
  await bindUnix(server, path);
  await registerPlugin(KUBELET, { endpoint, resourceName: resource.name, options: OPTIONS });
  return server;
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
