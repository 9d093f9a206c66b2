import { byText } from '../lists.ts';
import { bitCount, type Hint, type ResourceHints, subMasks } from './hints.ts';
import { type CpuTopology, numaMask } from './topology.ts';
import type { Behaviour } from './versions.ts';

export interface Device {
  readonly id: string;
  readonly healthy: boolean;
  /** The NUMA nodes in its TopologyInfo; absent if the plugin sent none. */
  readonly nodes?: readonly number[] | undefined;
}

export interface DevicePool {
  readonly devices: readonly Device[];
  /** Whether devices stay available when allocated, as those of a physnet: only their NUMA nodes matter. */
  readonly endless?: boolean | undefined;
}

export type DevicePools = ReadonlyMap<string, DevicePool>;

/** By pod uid, container name and resource. */
export type DeviceAllocations = ReadonlyMap<string, ReadonlyMap<string, ReadonlyMap<string, ReadonlySet<string>>>>;

/** A pool prepared for one host, with NUMA nodes as masks. Ids ascend, so that choices are repeatable. */
export interface IndexedPool {
  readonly devices: readonly IndexedDevice[];
  /** Whether some device names a NUMA node, which makes the resource part of alignment. */
  readonly aligned: boolean;
  readonly endless: boolean;
}

interface IndexedDevice extends Device {
  /** Without nodes that the host lacks. */
  readonly mask: number;
}

const hasNodes = ({ nodes }: Device): boolean => nodes !== undefined && nodes.length > 0;

export function indexPool(topology: CpuTopology, { devices: all, endless = false }: DevicePool): IndexedPool {
  // A spread of the device would cost a tenth of a whole prediction.
  const devices = all.map(({ id, healthy, nodes }) => ({ id, healthy, nodes, mask: numaMask(topology, nodes ?? []) }));
  return { devices: devices.sort(byText(({ id }) => id)), aligned: all.some(hasNodes), endless };
}

/**
 * A device counts for a set that includes any of its nodes. @param reusable devices that every hint must include
 * Source: pkg/kubelet/cm/devicemanager/topology_hints.go, generateDeviceTopologyHints.
 */
export function deviceHints(
  topology: CpuTopology,
  behaviour: Behaviour,
  pool: IndexedPool,
  available: ReadonlySet<string>,
  reusable: ReadonlySet<string>,
  request: number,
): ResourceHints {
  const everywhere = (1 << topology.numaIds.length) - 1;
  const hosting = pool.devices.reduce((mask, device) => mask | device.mask, 0);
  const considered = behaviour.deviceHints === 'device-nodes' && hosting !== 0 ? hosting : everywhere;

  const groups = groupByMask(pool, available, reusable);
  let narrowest = bitCount(considered);
  const masks: number[] = [];
  for (const mask of subMasks(considered)) {
    const width = bitCount(mask);
    let total = 0;
    let matching = 0;
    let coversReused = true;
    for (const group of groups) {
      if ((group.mask & mask) === 0) {
        if (group.reused > 0) coversReused = false;
        continue;
      }
      total += group.total;
      matching += group.available + group.reused;
    }
    if (width < narrowest && total >= request) narrowest = width;
    if (coversReused && matching >= request) masks.push(mask);
  }
  return masks.map((mask): Hint => ({ mask, preferred: bitCount(mask) === narrowest }));
}

/** Groups devices with equal NUMA nodes, which are interchangeable. All devices of a physnet are. */
function groupByMask(pool: IndexedPool, available: ReadonlySet<string>, reusable: ReadonlySet<string>) {
  const groups = new Map<number, { readonly mask: number; total: number; available: number; reused: number }>();
  for (const device of pool.devices) {
    const group = groups.get(device.mask) ?? { mask: device.mask, total: 0, available: 0, reused: 0 };
    groups.set(device.mask, group);
    group.total++;
    if (available.has(device.id)) group.available++;
    if (reusable.has(device.id) && device.nodes !== undefined) group.reused++;
  }
  return [...groups.values()];
}

/**
 * Near the hint, then elsewhere, then without a known node. The kubelet chooses at random within each; here the lowest
 * ids first. Source: pkg/kubelet/cm/devicemanager/manager.go, filterByAffinity and devicesToAllocate.
 */
export function handOutOrder(pool: IndexedPool, available: ReadonlySet<string>, mask: number | null): string[] {
  const free = pool.devices.filter((device) => available.has(device.id));
  if (!pool.aligned || mask === null) return free.map((device) => device.id);
  return [0, 1, 2].flatMap((rank) => free.filter((device) => rankOf(device, mask) === rank).map((device) => device.id));
}

/** Whether the kubelet's random choice may have other NUMA nodes than those of the prediction. */
export function isArbitrary(pool: IndexedPool, order: readonly string[], count: number, mask: number | null): boolean {
  if (!pool.aligned || count === 0 || order.length <= count) return false;
  const devices = new Map(pool.devices.map((device) => [device.id, device]));
  const nearness = (id: string) => rankOf(devices.get(id), mask);
  const last = nearness(order[count - 1] ?? '');
  const alike = order.filter((id) => nearness(id) === last).map((id) => devices.get(id)?.mask);
  return nearness(order[count] ?? '') === last && new Set(alike).size > 1;
}

/** 0 for a device near the hint, 1 for one elsewhere, 2 without a known NUMA node. */
function rankOf(device: IndexedDevice | undefined, mask: number | null): number {
  if (mask === null) return 0;
  if (!device || !hasNodes(device)) return 2;
  return (device.mask & mask) === 0 ? 1 : 0;
}
