import { Server, type ServerWritableStream, status } from '@grpc/grpc-js';
import {
  type DevicePluginServer,
  DevicePluginService,
  type ListAndWatchResponse,
} from '../../kube/kubelet-api/gen/device-plugin.ts';
import { bindUnix, closeServer, RpcError, SERVER_OPTIONS, unaryHandler } from '../../kube/kubelet-api/transport.ts';
import { quote } from '../../model/errors.ts';
import { type OwnSocket, placeSocket } from '../files/own-socket.ts';
import { type AdvertisedResource, devicesOf, slotOf } from './resources.ts';

/** A rejection keeps the kubelet from creating the container; the user sees it in an Event, and the kubelet retries. */
export type BeforeStart = (resource: string, deviceIds: readonly string[], signal: AbortSignal) => Promise<void>;

/** Maximum devices of one request, and concurrent watches: a kubelet requests a few devices and has one watch. */
const MAX_DEVICES = 1024;
const MAX_WATCHERS = 16;

export interface PluginServerDeps {
  readonly socketPath: string;
  readonly resource: AdvertisedResource;
  readonly beforeStart: BeforeStart;
  /** Called when the kubelet has ended its last watch, so that it needs a new registration. */
  readonly onUnwatched: () => void;
}

export type PluginServer = ReturnType<typeof createPluginServer>;

const NOTHING_TO_MOUNT = { envs: {}, mounts: [], devices: [] as never[], annotations: {}, cdiDevices: [] };

/** One resource's device plugin. Allocate answers from memory only: the kubelet waits for it without a deadline. */
export function createPluginServer(deps: PluginServerDeps) {
  const { socketPath, resource: first, beforeStart } = deps;
  const server = new Server(SERVER_OPTIONS);
  let socket: OwnSocket | undefined;
  const { name } = first;
  let resource = first;
  const watchers = new Set<ServerWritableStream<unknown, ListAndWatchResponse>>();
  // Devices stay valid once advertised: the kubelet may have chosen one just before it learned of fewer.
  let mostSlots = first.slots;
  const leave = (call: ServerWritableStream<unknown, ListAndWatchResponse>) => {
    if (watchers.delete(call) && watchers.size === 0) deps.onUnwatched();
  };

  const plugin: DevicePluginServer = {
    getDevicePluginOptions: unaryHandler(() => optionsOf(resource)),
    listAndWatch(call) {
      if (watchers.size >= MAX_WATCHERS) {
        const details = `more than ${MAX_WATCHERS} connections watch this plugin`;
        call.emit('error', { code: status.RESOURCE_EXHAUSTED, details });
        return;
      }
      watchers.add(call);
      call.on('cancelled', () => leave(call));
      call.on('error', () => leave(call));
      call.write({ devices: devicesOf(resource) });
    },
    getPreferredAllocation: unaryHandler(() => {
      throw new RpcError(status.UNIMPLEMENTED, 'not implemented: all devices of a resource are equal');
    }),
    allocate: unaryHandler(({ containerRequests }) => {
      for (const { devicesIds } of containerRequests) assertKnown(name, mostSlots, devicesIds);
      return { containerResponses: containerRequests.map(() => NOTHING_TO_MOUNT) };
    }),
    preStartContainer: unaryHandler(async ({ devicesIds }, signal) => {
      assertFew(devicesIds);
      await beforeStart(name, devicesIds, signal).catch((error: unknown) => {
        const message = error instanceof Error ? error.message : String(error);
        throw new RpcError(status.FAILED_PRECONDITION, message, { cause: error });
      });
      return {};
    }),
  };
  server.addService(DevicePluginService, plugin);

  return {
    get resource() {
      return resource;
    },
    update(next: AdvertisedResource) {
      resource = next;
      mostSlots = Math.max(mostSlots, next.slots);
      const devices = devicesOf(next);
      for (const call of watchers) call.write({ devices });
    },
    async start() {
      socket = await placeSocket(socketPath, (path) => bindUnix(server, path));
    },
    /** Whether its socket is still at the path; also true before it listens. */
    isInPlace: () => socket?.isInPlace() ?? true,
    async stop() {
      socket?.remove();
      const ending = [...watchers];
      watchers.clear();
      for (const call of ending) call.end();
      await closeServer(server);
    },
  };
}

export function optionsOf({ preStart }: AdvertisedResource) {
  return { preStartRequired: preStart, getPreferredAllocationAvailable: false };
}

function assertFew(ids: readonly string[]): void {
  if (ids.length > MAX_DEVICES) {
    throw new RpcError(status.INVALID_ARGUMENT, `${ids.length} devices in one request; the limit is ${MAX_DEVICES}`);
  }
}

function assertKnown(resource: string, slots: number, ids: readonly string[]): void {
  assertFew(ids);
  const unknown = ids.find((id) => (slotOf(resource, id) ?? slots) >= slots);
  if (unknown !== undefined) throw new RpcError(status.NOT_FOUND, `${resource} has no device ${quote(unknown)}`);
}
