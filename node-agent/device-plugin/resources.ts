import { createHash } from 'node:crypto';
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { HEALTHY, KUBELET_SOCKET, UNHEALTHY } from '../../kube/kubelet-api/device-plugin-client.ts';
import type { Device } from '../../kube/kubelet-api/gen/device-plugin.ts';
import type { CpuSet } from '../../model/cpu-set.ts';
import { PLACED_RESOURCE, physnetResource, TUNNEL_RESOURCE } from '../../model/names.ts';
import type { NodeNetworks } from '../../model/networks/reach.ts';
import { unlessMissing } from '../files/bounded-file.ts';

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
  const network = (name: string, cells: CpuSet, healthy: boolean) => ({
    name,
    cells: cells.toArray(),
    slots,
    preStart: true,
    healthy,
  });
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
