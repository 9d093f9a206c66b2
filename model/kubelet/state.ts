import { type CpuSet, unionOf } from '../cpu-set.ts';
import type { DeviceAllocations, DevicePools } from './devices.ts';
import type { MemoryState } from './memory-state.ts';

/** Exclusive CPUs by pod uid and container name. */
export type CpuAssignments = ReadonlyMap<string, ReadonlyMap<string, CpuSet>>;

/** Everything that one node's kubelet remembers and decides by. Immutable: admitting and removing make a new one. */
export interface KubeletState {
  /** The shared pool; reserved CPUs are in it unless strict-cpu-reservation keeps them out. */
  readonly defaultSet: CpuSet;
  readonly assignments: CpuAssignments;
  readonly pools: DevicePools;
  readonly devices: DeviceAllocations;
  /** There only under the static memory manager. */
  readonly memory?: MemoryState | undefined;
}

/** All CPUs that some container owns. */
export function ownedCpus(state: KubeletState): CpuSet {
  return unionOf([...state.assignments.values()].flatMap((containers) => [...containers.values()]));
}

/** A map with one entry set, or removed where the value is empty. */
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
