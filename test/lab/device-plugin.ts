import { statSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { Server } from '@grpc/grpc-js';
import { HEALTHY, KUBELET_SOCKET, registerPlugin } from '../../kube/kubelet-api/device-plugin-client.ts';
import { type DevicePluginServer, DevicePluginService } from '../../kube/kubelet-api/gen/device-plugin.ts';
import { bindUnix, SERVER_OPTIONS, unaryHandler } from '../../kube/kubelet-api/transport.ts';
import { sleep } from '../../runtime/time.ts';
import { TEST_RESOURCES, type TestResource } from './devices.ts';

/** Runs in the guest until it is stopped: offers the test resources to every kubelet that starts. */

const DIRECTORY = '/var/lib/kubelet/device-plugins';
const KUBELET = join(DIRECTORY, KUBELET_SOCKET);
const OPTIONS = { preStartRequired: false, getPreferredAllocationAvailable: false };
/** Seconds between two checks of the kubelet's socket. */
const CHECK_SECONDS = 0.2;

void main();

async function main(): Promise<void> {
  let known: string | undefined;
  const servers: Server[] = [];
  for (;;) {
    const found = socketOf(KUBELET);
    if (found !== undefined && found !== known) {
      // A kubelet empties the directory before it creates its own socket, so these come afterwards.
      for (const server of servers.splice(0)) server.forceShutdown();
      try {
        // One after the other, because a kubelet that starts on emulated hardware answers slowly.
        for (const resource of TEST_RESOURCES) await offer(resource, servers);
        known = found;
      } catch (error) {
        console.error(`registering again: ${(error as Error).message}`);
      }
    }
    await sleep(CHECK_SECONDS);
  }
}

function socketOf(path: string): string | undefined {
  const found = statSync(path, { throwIfNoEntry: false, bigint: true });
  return found && `${found.ino} ${found.ctimeNs}`;
}

async function offer(resource: TestResource, servers: Server[]): Promise<void> {
  const endpoint = `${resource.name.replace('/', '_')}.sock`;
  const path = join(DIRECTORY, endpoint);
  const server = new Server(SERVER_OPTIONS);
  servers.push(server);
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
