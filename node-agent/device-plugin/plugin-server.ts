import { createHash } from 'node:crypto';
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { Server, type ServerWritableStream, status } from '@grpc/grpc-js';
import { HEALTHY, KUBELET_SOCKET, UNHEALTHY } from '../../kube/kubelet-api/device-plugin-client.ts';
import {
  type Device,
  type DevicePluginServer,
  DevicePluginService,
  type ListAndWatchResponse,
} from '../../kube/kubelet-api/gen/device-plugin.ts';
import { bindUnix, closeServer, RpcError, SERVER_OPTIONS, unaryHandler } from '../../kube/kubelet-api/transport.ts';
import type { CpuSet } from '../../model/cpu-set.ts';
import { errorText, quote } from '../../model/errors.ts';
import { PLACED_RESOURCE, physnetResource, TUNNEL_RESOURCE } from '../../model/names.ts';
import type { NodeNetworks } from '../../model/networks/reach.ts';
import { unlessMissing } from '../files/bounded-file.ts';
import { type OwnSocket, placeSocket } from '../files/own-socket.ts';

/** One run of the kubelet, by its socket in that directory; '' without one. @throws a system error if it is unknown */
export function kubeletGeneration(directory: string): string {
  const socket = unlessMissing(() => statSync(join(directory, KUBELET_SOCKET)));
  return socket === undefined ? '' : `${socket.ino}:${socket.ctimeMs}`;
}

/** Maximum slots of a resource: every list of devices has one for each. */
const MAX_SLOTS = 10_000;

/** One resource that the agent advertises: a slot for each pod that may request it, all on the same NUMA nodes. */
export interface AdvertisedResource {
  readonly name: string;
  /** NUMA nodes of each device; empty: no particular NUMA node. */
  readonly cells: readonly number[];
  readonly slots: number;
  /** Whether the kubelet waits for the agent before it creates a container with such a device. */
  readonly preStart: boolean;
  /** The kubelet assigns no unhealthy device; pods that have one keep it. */
  readonly healthy: boolean;
}

/** One for each physnet, for the tunnel, and for placement. @param down without a carrier; undefined: the tunnel */
export function advertisedResources(
  { physnets, tunnel }: NodeNetworks,
  pods: number,
  down: ReadonlySet<string | undefined> = new Set(),
): AdvertisedResource[] {
  const slots = Math.min(MAX_SLOTS, pods);
  const network = (name: string, cells: CpuSet, healthy: boolean) => {
    return { name, cells: cells.toArray(), slots, preStart: true, healthy };
  };
  return [
    ...[...physnets].map(([name, cells]) => network(physnetResource(name), cells, !down.has(name))),
    ...(tunnel === undefined ? [] : [network(TUNNEL_RESOURCE, tunnel, !down.has(undefined))]),
    { name: PLACED_RESOURCE, cells: [], slots, preStart: false, healthy: true },
  ];
}

const idPrefix = (resource: string) => `${resource.slice(resource.indexOf('/') + 1)}-`;

/** They represent access, so all are equal. Ids name the resource: PreStartContainer has only ids. */
export function devicesOf({ name, cells, slots, healthy }: AdvertisedResource): Device[] {
  const topology = cells.length === 0 ? undefined : { nodes: cells.map((ID) => ({ ID })) };
  const health = healthy ? HEALTHY : UNHEALTHY;
  return Array.from({ length: slots }, (_, i) => ({ ID: idPrefix(name) + i, health, topology }));
}

/** The index of a resource's device, from 0; undefined if the id is not one of its devices. */
export function slotOf(resource: string, id: string): number | undefined {
  const prefix = idPrefix(resource);
  const number = id.slice(prefix.length);
  return id.startsWith(prefix) && /^(?:0|[1-9]\d{0,8})$/.test(number) ? Number(number) : undefined;
}

/** A socket address has at most 107 bytes, and the kubelet's directory takes part of them. */
const MAX_SOCKET_PART_CHARACTERS = 40;

/** Next to the kubelet's socket: the resource, or a hash of it where that is too long. */
export function socketName(resource: string): string {
  const part = resource.replace('.plumbline.dev/', '-').replace('plumbline.dev/', '');
  if (part.length <= MAX_SOCKET_PART_CHARACTERS) return `plumbline-${part}.sock`;
  return `plumbline-${createHash('sha256').update(part).digest('hex').slice(0, 16)}.sock`;
}

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
      throw new RpcError(status.FAILED_PRECONDITION, errorText(error), { cause: error });
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
