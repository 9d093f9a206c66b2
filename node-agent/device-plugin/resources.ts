import { createHash } from 'node:crypto';
import { HEALTHY } from '../../kube/kubelet-api/device-plugin-client.ts';
import type { Device } from '../../kube/kubelet-api/gen/device-plugin.ts';
import { PLACED_RESOURCE, physnetResource, TUNNEL_RESOURCE } from '../../model/names.ts';
import type { Networks } from '../networks/network-map.ts';

/** One resource that the agent advertises: as many slots as pods may want it, all in the same place. */
export interface AdvertisedResource {
  readonly name: string;
  /** NUMA nodes of each device; empty: near to none in particular. */
  readonly cells: readonly number[];
  readonly slots: number;
  /** Whether the kubelet is to wait for the agent before it creates a container that has such a device. */
  readonly preStart: boolean;
}

/** The resources of a node: one for each physnet, one for the tunnel, one that opts ordinary pods into placement. */
export function advertisedResources(networks: Networks, slots: number): AdvertisedResource[] {
  const resources = networks.physnets.map(({ name, cells }) => ({ name: physnetResource(name), cells }));
  if (networks.tunnel !== undefined) resources.push({ name: TUNNEL_RESOURCE, cells: networks.tunnel.cells });
  return [
    ...resources.map((resource) => ({ ...resource, slots, preStart: true })),
    { name: PLACED_RESOURCE, cells: [], slots, preStart: false },
  ];
}

/**
 * The devices of a resource. They stand for access, not for hardware, so each is as good as the other; their ids name
 * the resource, because the kubelet hands PreStartContainer nothing but ids.
 */
export function devicesOf({ name, cells, slots }: AdvertisedResource): Device[] {
  const topology = cells.length === 0 ? undefined : { nodes: cells.map((ID) => ({ ID })) };
  const prefix = name.slice(name.indexOf('/') + 1);
  return Array.from({ length: slots }, (_, i) => ({ ID: `${prefix}-${i}`, health: HEALTHY, topology }));
}

/** Socket addresses end at 107 bytes, and the kubelet's directory takes part of them. */
const LONGEST_SOCKET_PART = 40;

/** The file name of a resource's socket, beside the kubelet's: what it is for, or a hash where that is too long. */
export function socketName(resource: string): string {
  const part = resource.replace('.plumbline.dev/', '-').replace('plumbline.dev/', '');
  if (part.length <= LONGEST_SOCKET_PART) return `plumbline-${part}.sock`;
  return `plumbline-${createHash('sha256').update(part).digest('hex').slice(0, 16)}.sock`;
}
