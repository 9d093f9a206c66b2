import { CpuSet } from '../cpu-set.ts';
import { HostError, MAX_CELL_ID } from '../host.ts';
import { KUBELET_CONFIG_CONDITION, KUBELET_RUN_CONDITION } from '../names.ts';
import { bytesText } from '../quantity.ts';
import type { Device, DeviceAllocations, DevicePool, DevicePools } from './devices.ts';
import type { HostReport, ReportedDevices, ReportedMemoryState } from './host-report.ts';
import { type CellMemory, initialMemory } from './memory-state.ts';
import type { KubeletState } from './state.ts';
import { type CpuTopology, numaMask } from './topology.ts';

const DECISIVE_CONDITIONS: readonly string[] = [KUBELET_RUN_CONDITION, KUBELET_CONFIG_CONDITION];

/** More devices of a group make no difference to a pod that asks for at most as many. */
const MAX_GROUP_DEVICES = 1024;
/** Devices of all resources of a node, which bounds the memory that a report takes. */
const MAX_DEVICES = 16_384;
/** Stands for the pods that have the devices in use: a report does not name them. */
const REPORTED_PODS = '(reported)';

type UsedDevices = readonly (readonly [resource: string, used: readonly number[]])[];
type Amounts = readonly (readonly [type: string, bytes: number])[];
type UsedMemory = readonly (ReportedMemoryState & { readonly id: number; readonly unaccounted?: Amounts })[];
type ReportedCell = CellMemory & { readonly state?: ReportedMemoryState | undefined };

/** Equal for nodes of the same model. */
export function reportWithoutPods<R extends HostReport>(report: R): R {
  const { devices, memoryManager } = report;
  const memoryCells = memoryManager?.cells?.map((cell) => ({
    ...cell,
    freePages: undefined,
    state: cell.state && { blocks: 0, group: `${cell.id}`, free: {} },
  }));
  return {
    ...report,
    assignments: [],
    claims: undefined,
    devices: devices?.map((entry) => ({
      ...entry,
      groups: entry.groups.map((group) => ({ ...group, free: group.total })),
    })),
    memoryManager: memoryManager && { ...memoryManager, cells: memoryCells },
    conditions: conditionsOfKubelet(report),
    pinning: undefined,
    refusals: undefined,
    summary: undefined,
  };
}

/** Only what makes the kubelet unpredictable, and without the time, which differs from node to node. */
function conditionsOfKubelet({ conditions }: HostReport): HostReport['conditions'] {
  const missing = conditions?.filter(({ type, status }) => DECISIVE_CONDITIONS.includes(type) && status === 'False');
  if (missing === undefined || missing.length === 0) return undefined;
  return missing.map(({ type, status, message }) => ({ type, status, message }));
}

/** Devices, memory and pages in use, as a text that is equal for equal usage; '' for none. @throws ParseError */
export function usageOf({ devices = [], memoryManager }: HostReport): string {
  const used: UsedDevices = devices
    .map(({ resource, groups }) => [resource, groups.map(usedDevices)] as const)
    .filter(([, counts]) => counts.some((count) => count > 0));
  const cells = memoryManager?.cells ?? [];
  const memory: UsedMemory = cells.flatMap((cell) => {
    const { id, state } = cell;
    const unaccounted = takenPages(cell);
    if (state === undefined || (isIdle(state, cell) && unaccounted.length === 0)) return [];
    const group = CpuSet.parse(state.group, MAX_CELL_ID).toString();
    return [{ id, ...state, group, ...(unaccounted.length > 0 && { unaccounted }) }];
  });
  const free = memoryManager?.policy === 'Static' ? [] : pagesLeft(cells);
  return used.length + memory.length + free.length === 0 ? '' : JSON.stringify([used, memory, free]);
}

/** Bytes in huge pages of a NUMA node that the static memory manager counts as free and the kernel does not. */
export function takenPages({ state, freePages = {} }: ReportedCell): Amounts {
  return Object.entries(freePages)
    .map(([type, bytes]) => [type, (state?.free[type] ?? 0) - bytes] as const)
    .filter(([, bytes]) => bytes > 0);
}

/** `4 GiB of 1Gi pages`. */
export const pagesText = (type: string, bytes: number): string =>
  `${bytesText(bytes)} of ${type.replace('hugepages-', '')} pages`;

/** @param pages amounts as `pagesText`, with their NUMA nodes */
export const takenPagesText = (pages: readonly string[]): string =>
  `${pages.join(' and ')} are taken by processes that did not reserve them`;

/** Bytes in huge pages that the kernel has free on the whole node, of each type of which some are in use. */
function pagesLeft(cells: readonly ReportedCell[]): Amounts {
  const free = new Map<string, number>();
  const used = new Set<string>();
  for (const { hugePages = {}, freePages = {} } of cells) {
    for (const [type, bytes] of Object.entries(freePages)) {
      free.set(type, (free.get(type) ?? 0) + bytes);
      if (bytes < (hugePages[type] ?? 0)) used.add(type);
    }
  }
  return [...free].filter(([type]) => used.has(type));
}

/** Whether no block uses the NUMA node, and no earlier block has left its bytes on another one. */
function isIdle({ blocks, free }: ReportedMemoryState, cell: CellMemory): boolean {
  const [empty] = initialMemory([cell.id], [cell]).cells;
  return blocks === 0 && [...(empty?.tables ?? [])].every(([type, { allocatable }]) => free[type] === allocatable);
}

function usedDevices({ total, free }: ReportedDevices['groups'][number]): number {
  return Math.max(0, Math.min(total, MAX_GROUP_DEVICES) - Math.min(free, MAX_GROUP_DEVICES));
}

/** The state with the devices and memory of `usageOf` in use. */
export function withUsage(state: KubeletState, topology: CpuTopology, usage: string): KubeletState {
  if (usage === '') return state;
  const [used, memory, free] = JSON.parse(usage) as [UsedDevices, UsedMemory, Amounts];
  const ids = used.map(([resource, counts]) => [resource, new Set(counts.flatMap(deviceIds))] as const);
  const devices: DeviceAllocations = new Map([[REPORTED_PODS, new Map([['', new Map(ids)]])]]);
  if (state.memory === undefined) return { ...state, devices, freePages: new Map(free) };
  const cells = state.memory.cells.map((cell, bit) => {
    const reported = memory.find(({ id }) => id === topology.numaIds[bit]);
    if (reported === undefined) return cell;
    const tables = [...cell.tables].map(([type, { allocatable, free }]) => {
      return [type, { allocatable, free: Math.min(allocatable, reported.free[type] ?? free) }] as const;
    });
    const group = numaMask(topology, CpuSet.parse(reported.group, MAX_CELL_ID)) | (1 << bit);
    return { blocks: reported.blocks, group, tables: new Map(tables), unaccounted: new Map(reported.unaccounted) };
  });
  return { ...state, devices, memory: { ...state.memory, cells } };
}

/** Of a report without pods. @throws HostError if they are too many; ParseError */
export function reportedPools(devices: readonly ReportedDevices[] = []): DevicePools {
  const pools = new Map<string, DevicePool>();
  let count = 0;
  for (const { resource, groups, dra } of devices) {
    if (dra) continue;
    const pool = groups.flatMap(({ cells, total }, group): Device[] => {
      const nodes = cells === undefined ? undefined : CpuSet.parse(cells, MAX_CELL_ID).toArray();
      const length = Math.min(total, MAX_GROUP_DEVICES);
      count += length;
      if (count > MAX_DEVICES) throw new HostError(`the report has more than ${MAX_DEVICES} devices`);
      return deviceIds(length, group).map((id) => ({ id, healthy: true, nodes }));
    });
    pools.set(resource, { devices: pool });
  }
  return pools;
}

function deviceIds(count: number, group: number): string[] {
  return Array.from({ length: count }, (_, index) => `${group}.${index}`);
}

/** What pods in flight use: states of the same origin with equal texts have the same future. */
export function stateText({ defaultSet, pools, devices, memory }: KubeletState): string {
  const ids: string[] = [];
  for (const [uid, containers] of devices) {
    if (uid === REPORTED_PODS) continue;
    for (const resources of containers.values()) {
      for (const [resource, used] of resources) {
        if (pools.get(resource)?.endless) continue;
        for (const id of used) ids.push(`${resource}/${id}`);
      }
    }
  }
  const inMemory = memory?.cells.map(({ blocks, group, tables }) => [
    blocks,
    group,
    [...tables].map(([, { free }]) => free),
  ]);
  return `${defaultSet} ${ids.sort().join()} ${JSON.stringify(inMemory ?? [])}`;
}
