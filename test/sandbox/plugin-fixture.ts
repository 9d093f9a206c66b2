import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { Server, type ServerWritableStream, status } from '@grpc/grpc-js';
import { registerPlugin } from '../../kube/kubelet-api/device-plugin-client.ts';
import {
  type Device,
  type DevicePluginServer,
  DevicePluginService,
  type Empty,
  type ListAndWatchResponse,
} from '../../kube/kubelet-api/gen/device-plugin.ts';
import { bindUnix, closeServer, RpcError, SERVER_OPTIONS, unaryHandler } from '../../kube/kubelet-api/transport.ts';

const running = new Set<() => Promise<void>>();

/** Stops plugins that a failed test has left running. */
export async function stopPlugins(): Promise<void> {
  for (const stop of running) await stop();
}

/** A device plugin for one resource, whose answers a test sets. */
export async function startPlugin(kubeletDirectory: string, resourceName: string, nodes: number[], count = 4) {
  const directory = join(kubeletDirectory, 'device-plugins');
  const endpoint = `${resourceName.replaceAll('/', '_')}.sock`;
  const streams = new Set<ServerWritableStream<Empty, ListAndWatchResponse>>();
  const calls: string[] = [];
  let refusal: string | undefined;
  const devices: Device[] = Array.from({ length: count }, (_, i) => ({
    ID: `${resourceName}-${i}`,
    health: 'Healthy',
    topology: { nodes: nodes.map((ID) => ({ ID })) },
  }));
  const plugin: DevicePluginServer = {
    getDevicePluginOptions: unaryHandler(() => ({ preStartRequired: true, getPreferredAllocationAvailable: false })),
    listAndWatch: (stream) => {
      streams.add(stream);
      stream.on('cancelled', () => streams.delete(stream));
      stream.write({ devices });
    },
    getPreferredAllocation: unaryHandler(() => ({ containerResponses: [] })),
    allocate: unaryHandler(({ containerRequests }) => {
      calls.push(`allocate ${containerRequests[0]?.devicesIds.join()}`);
      return { containerResponses: [{ envs: {}, mounts: [], devices: [], annotations: {}, cdiDevices: [] }] };
    }),
    preStartContainer: unaryHandler(({ devicesIds }) => {
      calls.push(`preStart ${devicesIds.join()}`);
      if (refusal !== undefined) throw new RpcError(status.FAILED_PRECONDITION, refusal);
      return {};
    }),
  };
  const server = new Server(SERVER_OPTIONS);
  server.addService(DevicePluginService, plugin);
  await rm(join(directory, endpoint), { force: true });
  await bindUnix(server, join(directory, endpoint));
  const options = { preStartRequired: true, getPreferredAllocationAvailable: false };
  await registerPlugin(join(directory, 'kubelet.sock'), { endpoint, resourceName, options });
  const stop = async () => {
    running.delete(stop);
    for (const stream of streams) stream.end();
    await closeServer(server, 0.1);
  };
  running.add(stop);
  return {
    calls,
    refuseStart(text: string | undefined) {
      refusal = text;
    },
    stop,
  };
}
