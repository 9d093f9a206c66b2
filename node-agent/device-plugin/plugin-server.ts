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

type Watcher = ServerWritableStream<unknown, ListAndWatchResponse>;

const NOTHING_TO_MOUNT = { envs: {}, mounts: [], devices: [] as never[], annotations: {}, cdiDevices: [] };

/** One resource's device plugin. Allocate answers from memory only: the kubelet waits for it without a deadline. */
export class PluginServer {
  readonly #deps: PluginServerDeps;
  readonly #server = new Server(SERVER_OPTIONS);
  /** Undefined until it listens. */
  #socket: OwnSocket | undefined;
  #resource: AdvertisedResource;
  /** Devices stay valid once advertised: the kubelet may have chosen one just before it learned of fewer. */
  #mostSlots: number;
  /** The kubelet's open calls; each ends when the kubelet cancels it, or with the server. */
  readonly #watchers = new Set<Watcher>();

  constructor(deps: PluginServerDeps) {
    this.#deps = deps;
    this.#resource = deps.resource;
    this.#mostSlots = deps.resource.slots;
    const plugin: DevicePluginServer = {
      getDevicePluginOptions: unaryHandler(() => optionsOf(this.#resource)),
      listAndWatch: (call) => this.#watch(call),
      getPreferredAllocation: unaryHandler(() => {
        throw new RpcError(status.UNIMPLEMENTED, 'not implemented: all devices of a resource are equal');
      }),
      allocate: unaryHandler(({ containerRequests }) => {
        const { name } = this.#resource;
        for (const { devicesIds } of containerRequests) assertKnown(name, this.#mostSlots, devicesIds);
        return { containerResponses: containerRequests.map(() => NOTHING_TO_MOUNT) };
      }),
      preStartContainer: unaryHandler(({ devicesIds }, signal) => this.#beforeStart(devicesIds, signal)),
    };
    this.#server.addService(DevicePluginService, plugin);
  }

  get resource(): AdvertisedResource {
    return this.#resource;
  }

  update(next: AdvertisedResource): void {
    this.#resource = next;
    this.#mostSlots = Math.max(this.#mostSlots, next.slots);
    const devices = devicesOf(next);
    for (const call of this.#watchers) call.write({ devices });
  }

  /** @throws Error if it cannot listen */
  async start(): Promise<void> {
    this.#socket = await placeSocket(this.#deps.socketPath, (path) => bindUnix(this.#server, path));
  }

  /** Whether its socket is still at the path; also true before it listens. */
  isInPlace(): boolean {
    return this.#socket?.isInPlace() ?? true;
  }

  async stop(): Promise<void> {
    this.#socket?.remove();
    const ending = [...this.#watchers];
    this.#watchers.clear();
    for (const call of ending) call.end();
    await closeServer(this.#server);
  }

  #watch(call: Watcher): void {
    if (this.#watchers.size >= MAX_WATCHERS) {
      const details = `more than ${MAX_WATCHERS} connections watch this plugin`;
      call.emit('error', { code: status.RESOURCE_EXHAUSTED, details });
      return;
    }
    this.#watchers.add(call);
    call.on('cancelled', () => this.#leave(call));
    call.on('error', () => this.#leave(call));
    call.write({ devices: devicesOf(this.#resource) });
  }

  #leave(call: Watcher): void {
    if (this.#watchers.delete(call) && this.#watchers.size === 0) this.#deps.onUnwatched();
  }

  async #beforeStart(ids: readonly string[], signal: AbortSignal): Promise<Record<string, never>> {
    assertFew(ids);
    try {
      await this.#deps.beforeStart(this.#resource.name, ids, signal);
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      throw new RpcError(status.FAILED_PRECONDITION, message, { cause: error });
    }
    return {};
  }
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
