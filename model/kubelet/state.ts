import { type CpuSet, unionOf } from '../cpu-set.ts';
import type { Device, DeviceAllocations, DevicePools } from './devices.ts';
import type { MemoryState } from './memory-state.ts';

/** By pod uid and container name. */
export type CpuAssignments = ReadonlyMap<string, ReadonlyMap<string, CpuSet>>;

/** Immutable: admitting or removing a pod creates a new state. */
export interface KubeletState {
  /** The shared pool. It contains the reserved CPUs unless strict-cpu-reservation is on. */
  readonly defaultSet: CpuSet;
  readonly assignments: CpuAssignments;
  readonly pools: DevicePools;
  readonly devices: DeviceAllocations;
  /** Present only under the static memory manager. */
  readonly memory?: MemoryState | undefined;
  /** Bytes in huge pages that are free by the kernel, on the whole node; only without the static memory manager. */
  readonly freePages?: ReadonlyMap<string, number> | undefined;
}

export function cpusOf(assignments: CpuAssignments): CpuSet {
  return unionOf([...assignments.values()].flatMap((containers) => [...containers.values()]));
}

/** Healthy and of no pod; undefined without a plugin, and if its devices stay available when allocated. */
export function freeDevices({ pools, devices }: KubeletState, resource: string): Device[] | undefined {
  const pool = pools.get(resource);
  if (pool === undefined || pool.endless) return undefined;
  const containers = [...devices.values()].flatMap((pod) => [...pod.values()]);
  const used = new Set(containers.flatMap((ids) => [...(ids.get(resource) ?? [])]));
  return pool.devices.filter(({ id, healthy }) => healthy && !used.has(id));
}

/** Removes the entry if the value is empty. */
export function withEntry<V extends { readonly size: number }>(
  map: ReadonlyMap<string, V>,
  key: string,
  value: V,
): ReadonlyMap<string, V> {
  const copy = new Map(map);
  if (value.size === 0) copy.delete(key);
  else copy.set(key, value);
  return copy;
}
