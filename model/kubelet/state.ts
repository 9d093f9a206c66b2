import { type CpuSet, unionOf } from '../cpu-set.ts';
import type { DeviceAllocations, DevicePools } from './devices.ts';
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

/** The CPUs of all containers. */
export function cpusOf(assignments: CpuAssignments): CpuSet {
  return unionOf([...assignments.values()].flatMap((containers) => [...containers.values()]));
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
