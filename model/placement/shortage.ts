import type { Kubelet } from '../kubelet/kubelet.ts';
import { type PodRequest, podCpus, podDevices, podMemory } from '../kubelet/pod-request.ts';
import type { KubeletState } from '../kubelet/state.ts';
import type { PlacementHost } from './needs.ts';

/** Amounts of one resource by the id of the NUMA node. */
type ByCell = ReadonlyMap<number, number>;

/**
 * The device or kind of memory because of which a kubelet rejects a pod, with its place and amounts; undefined if the
 * CPUs are the reason.
 */
export function shortResource(
  request: PodRequest,
  { host, reserved }: PlacementHost,
  { topology }: Kubelet,
  state: KubeletState,
): string | undefined {
  const free = state.defaultSet.minus(reserved);
  const freeCpus = new Map(host.cells.map((cell) => [cell.id, free.intersect(cell.cpus).size]));
  const cpus = { free: freeCpus, needed: podCpus(request) };
  for (const [resource, count] of podDevices(request)) {
    const text = shortDevice(state, topology.numaIds, cpus, { resource, count });
    if (text !== undefined) return `${resource}: ${text}`;
  }
  if (state.memory === undefined) return undefined;
  for (const [type, bytes] of podMemory(request)) {
    const ofCells = state.memory.cells.map(({ tables }) => tables.get(type)?.free ?? 0);
    const text = shortMemory(new Map(topology.numaIds.map((id, bit) => [id, ofCells[bit] ?? 0])), bytes, cpus);
    if (text !== undefined) return `${type}: ${text}`;
  }
  return undefined;
}

interface CpuAmounts {
  readonly free: ByCell;
  readonly needed: number;
}

function shortDevice(
  state: KubeletState,
  numaIds: readonly number[],
  { free, needed }: CpuAmounts,
  { resource, count }: { readonly resource: string; readonly count: number },
): string | undefined {
  const devices = freeDevices(state, resource);
  if (devices === undefined || count === 0) return undefined;
  if (devices.length < count) return `${devices.length} free, ${count} needed`;
  if (devices.every((nodes) => nodes === undefined || nodes.length === 0)) return undefined;
  const byCell = new Map(numaIds.map((id) => [id, devices.filter((nodes) => nodes?.includes(id)).length]));
  const cells = cellsWith(byCell, count);
  if (cells.length === 0) return `${count} needed near each other; ${countText(byCell)}`;
  const most = Math.max(...cells.map((id) => free.get(id) ?? 0));
  if (most >= needed) return undefined;
  const owned = cells.length === 1 ? 'its CPUs are owned' : 'their CPUs are owned';
  const cpus = most === 0 ? owned : `${most} of ${needed} needed CPUs are free there`;
  return `free on NUMA node ${cells.join()} only; ${cpus}`;
}

function shortMemory(byCell: ByCell, bytes: number, { free, needed }: CpuAmounts): string | undefined {
  const total = [...byCell.values()].reduce((sum, amount) => sum + amount, 0);
  if (total < bytes) return `${bytesText(total)} free, ${bytesText(bytes)} needed`;
  const cells = cellsWith(free, needed);
  if (cells.length === 0 || cells.some((id) => (byCell.get(id) ?? 0) >= bytes)) return undefined;
  const places = cells.map((id) => `${bytesText(byCell.get(id) ?? 0)} free on NUMA node ${id}`);
  return `${places.join(', ')}, ${bytesText(bytes)} needed`;
}

/** The NUMA nodes of each free device; undefined if the resource has no limited devices. */
function freeDevices(state: KubeletState, resource: string): (readonly number[] | undefined)[] | undefined {
  const pool = state.pools.get(resource);
  if (pool === undefined || pool.endless) return undefined;
  const used = new Set(
    [...state.devices.values()].flatMap((pod) => [...pod.values()].flatMap((ids) => [...(ids.get(resource) ?? [])])),
  );
  return pool.devices.filter(({ id, healthy }) => healthy && !used.has(id)).map(({ nodes }) => nodes);
}

function cellsWith(amounts: ByCell, least: number): number[] {
  return [...amounts].filter(([, amount]) => amount >= least).map(([id]) => id);
}

/** Amounts for messages: `free by NUMA node: 0: 3, 1: 32`. */
export function countText(amounts: ByCell): string {
  return `free by NUMA node: ${[...amounts].map(([id, amount]) => `${id}: ${amount}`).join(', ')}`;
}

const UNITS = ['Ki', 'Mi', 'Gi', 'Ti'];

function bytesText(bytes: number): string {
  const power = Math.min(UNITS.length, Math.floor(Math.log2(Math.max(1, bytes)) / 10));
  if (power === 0) return `${bytes}`;
  return `${Number((bytes / 1024 ** power).toFixed(1))}${UNITS[power - 1]}`;
}
