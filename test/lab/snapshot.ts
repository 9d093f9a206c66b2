import * as z from 'zod';
import { CpuSet } from '../../model/cpu-set.ts';
import type { KubeletState } from '../../model/kubelet/state.ts';

interface MemorySnapshot {
  /** By NUMA node: the number of blocks on it, the NUMA nodes grouped with it, and free bytes by kind. */
  readonly cells: Record<string, { blocks: number; group: string; free: Record<string, number> }>;
  /** By pod, container and kind: the NUMA nodes and the bytes. */
  readonly blocks: Record<string, Record<string, Record<string, string>>>;
}

/** A kubelet's assignments as plain data: pod, container, and CPUs as a list or device ids by resource. */
export interface Snapshot {
  readonly defaultSet: string;
  readonly cpus: Record<string, Record<string, string>>;
  readonly devices: Record<string, Record<string, Record<string, string[]>>>;
  /** With the static memory manager. */
  readonly memory?: MemorySnapshot | undefined;
}

const cpuCheckpoint = z.object({
  policyName: z.literal('static'),
  defaultCpuSet: z.string(),
  entries: z.record(z.string(), z.record(z.string(), z.string())).nullish(),
});

const deviceCheckpoint = z.object({
  Data: z.object({
    PodDeviceEntries: z
      .array(
        z.object({
          PodUID: z.string(),
          ContainerName: z.string(),
          ResourceName: z.string(),
          DeviceIDs: z.record(z.string(), z.array(z.string())),
        }),
      )
      .nullish(),
    RegisteredDevices: z.record(z.string(), z.array(z.string())).nullish(),
  }),
});

const memoryCheckpoint = z.object({
  policyName: z.string(),
  machineState: z
    .record(
      z.string(),
      z.object({
        numberOfAssignments: z.number(),
        memoryMap: z.record(z.string(), z.object({ free: z.number(), total: z.number() })),
        cells: z.array(z.number()),
      }),
    )
    .nullish(),
  entries: z
    .record(
      z.string(),
      z.record(
        z.string(),
        z.array(z.object({ numaAffinity: z.array(z.number()), type: z.string(), size: z.number() })),
      ),
    )
    .nullish(),
});

/** The files below the kubelet's root directory that `readCheckpoints` reads. */
export const CPU_CHECKPOINT = 'cpu_manager_state';
export const DEVICE_CHECKPOINT = 'device-plugins/kubelet_internal_checkpoint';
export const MEMORY_CHECKPOINT = 'memory_manager_state';

export interface Checkpoints {
  readonly cpu: string;
  readonly device: string;
  readonly memory: string;
}

/**
 * The kubelet's own checkpoints as a snapshot. Devices of deleted pods stay in their file until it is next written, so
 * only those of known pods count.
 * @param names names of the existing pods by uid; a CPU entry of any other pod keeps its uid
 * @throws ZodError, SyntaxError
 */
export function readCheckpoints(texts: Checkpoints, names: ReadonlyMap<string, string>): Snapshot {
  const { defaultCpuSet, entries } = cpuCheckpoint.parse(JSON.parse(texts.cpu));
  const cpus = Object.fromEntries(Object.entries(entries ?? {}).map(([uid, all]) => [names.get(uid) ?? uid, all]));
  const devices: Snapshot['devices'] = {};
  for (const entry of deviceCheckpoint.parse(JSON.parse(texts.device)).Data.PodDeviceEntries ?? []) {
    const pod = names.get(entry.PodUID);
    if (pod === undefined) continue;
    devices[pod] ??= {};
    devices[pod][entry.ContainerName] ??= {};
    // A device near two NUMA nodes is listed for both.
    devices[pod][entry.ContainerName]![entry.ResourceName] = [...new Set(Object.values(entry.DeviceIDs).flat())].sort();
  }
  const memory = memoryIn(texts.memory, names);
  return sorted({ defaultSet: defaultCpuSet, cpus, devices, ...(memory && { memory }) });
}

/** Kinds that a NUMA node does not have are left out. */
function memoryIn(text: string, names: ReadonlyMap<string, string>): MemorySnapshot | undefined {
  const { policyName, machineState, entries } = memoryCheckpoint.parse(JSON.parse(text));
  if (policyName !== 'Static') return undefined;
  const cells: MemorySnapshot['cells'] = {};
  for (const [node, { numberOfAssignments, memoryMap, cells: group }] of Object.entries(machineState ?? {})) {
    const present = Object.entries(memoryMap).filter(([, { total }]) => total > 0);
    const free = Object.fromEntries(present.map(([kind, table]) => [kind, table.free]));
    cells[node] = { blocks: numberOfAssignments, group: `${CpuSet.of(group)}`, free };
  }
  const blocks: MemorySnapshot['blocks'] = {};
  for (const [uid, containers] of Object.entries(entries ?? {})) {
    blocks[names.get(uid) ?? uid] = Object.fromEntries(
      Object.entries(containers).map(([container, held]) => [
        container,
        Object.fromEntries(held.map((one) => [one.type, `${CpuSet.of(one.numaAffinity)}: ${one.size}`])),
      ]),
    );
  }
  return { cells, blocks };
}

export function registeredDevices(deviceText: string): ReadonlyMap<string, number> {
  const { RegisteredDevices } = deviceCheckpoint.parse(JSON.parse(deviceText)).Data;
  return new Map(Object.entries(RegisteredDevices ?? {}).map(([name, ids]) => [name, ids.length]));
}

export function snapshotOf(state: KubeletState): Snapshot {
  const cpus = fromMap(state.assignments, (containers) => fromMap(containers, String));
  const devices = fromMap(state.devices, (containers) =>
    fromMap(containers, (resources) => fromMap(resources, (ids) => [...ids].sort())),
  );
  const memory = state.memory && {
    cells: Object.fromEntries(
      state.memory.cells.map((cell, bit) => {
        return [`${bit}`, { blocks: cell.blocks, group: nodesUnder(cell.group), free: fromMap(cell.tables, freeOf) }];
      }),
    ),
    blocks: fromMap(state.memory.blocks, (containers) =>
      fromMap(containers, (held) =>
        Object.fromEntries(held.map(({ mask, type, size }) => [type, `${nodesUnder(mask)}: ${size}`])),
      ),
    ),
  };
  return sorted({ defaultSet: `${state.defaultSet}`, cpus, devices, ...(memory && { memory }) });
}

const freeOf = ({ free }: { readonly free: number }): number => free;

/** The lab numbers its NUMA nodes like the kubelet's masks. */
function nodesUnder(mask: number): string {
  return `${CpuSet.of([...mask.toString(2)].reverse().flatMap((digit, bit) => (digit === '1' ? [bit] : [])))}`;
}

export function sorted({ defaultSet, cpus, devices, memory }: Snapshot): Snapshot {
  return { defaultSet, cpus: ordered(cpus), devices: ordered(devices), ...(memory && { memory: ordered(memory) }) };
}

/** Keys in order at every level, so that equal snapshots give equal text. */
function ordered<T>(value: T): T {
  if (value === null || typeof value !== 'object' || Array.isArray(value)) return value;
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(entries.map(([key, inner]) => [key, ordered(inner)])) as T;
}

function fromMap<V, W>(map: ReadonlyMap<string, V>, convert: (value: V) => W): Record<string, W> {
  return Object.fromEntries([...map].map(([key, value]) => [key, convert(value)]));
}
