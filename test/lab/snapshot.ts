import * as z from 'zod';
import { CpuSet } from '../../model/cpu-set.ts';
import type { DeviceAllocations } from '../../model/kubelet/devices.ts';
import type { CpuAssignments, KubeletState } from '../../model/kubelet/state.ts';

/** What a kubelet has given away, as plain data: pod, container, and CPUs as a list or device ids by resource. */
export const snapshot = z.object({
  defaultSet: z.string(),
  cpus: z.record(z.string(), z.record(z.string(), z.string())),
  devices: z.record(z.string(), z.record(z.string(), z.record(z.string(), z.array(z.string())))),
});

export type Snapshot = z.infer<typeof snapshot>;

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

/** The files below the kubelet's root directory that `readCheckpoints` reads. */
export const CPU_CHECKPOINT = 'cpu_manager_state';
export const DEVICE_CHECKPOINT = 'device-plugins/kubelet_internal_checkpoint';

/**
 * The kubelet's own two checkpoints as a snapshot.
 *
 * Devices of pods that are gone stay in their file until it is next written, so only those of known pods count.
 *
 * @param names names of the pods that exist, by uid; a CPU entry of any other pod keeps its uid
 * @throws ZodError, SyntaxError
 */
export function readCheckpoints(cpuText: string, deviceText: string, names: ReadonlyMap<string, string>): Snapshot {
  const { defaultCpuSet, entries } = cpuCheckpoint.parse(JSON.parse(cpuText));
  const cpus = Object.fromEntries(Object.entries(entries ?? {}).map(([uid, all]) => [names.get(uid) ?? uid, all]));
  const devices: Snapshot['devices'] = {};
  for (const entry of deviceCheckpoint.parse(JSON.parse(deviceText)).Data.PodDeviceEntries ?? []) {
    const pod = names.get(entry.PodUID);
    if (pod === undefined) continue;
    devices[pod] ??= {};
    devices[pod][entry.ContainerName] ??= {};
    // A device near two NUMA nodes stands under both.
    devices[pod][entry.ContainerName]![entry.ResourceName] = [...new Set(Object.values(entry.DeviceIDs).flat())].sort();
  }
  return sorted({ defaultSet: defaultCpuSet, cpus, devices });
}

/** How many devices of each resource the kubelet has from its plugins. */
export function registeredDevices(deviceText: string): ReadonlyMap<string, number> {
  const { RegisteredDevices } = deviceCheckpoint.parse(JSON.parse(deviceText)).Data;
  return new Map(Object.entries(RegisteredDevices ?? {}).map(([name, ids]) => [name, ids.length]));
}

/** A predicted state in the same form. */
export function snapshotOf(state: KubeletState): Snapshot {
  const cpus = fromMap(state.assignments, (containers) => fromMap(containers, String));
  const devices = fromMap(state.devices, (containers) =>
    fromMap(containers, (resources) => fromMap(resources, (ids) => [...ids].sort())),
  );
  return sorted({ defaultSet: `${state.defaultSet}`, cpus, devices });
}

export function cpusOf({ cpus }: Snapshot): CpuAssignments {
  return toMap(cpus, (containers) => toMap(containers, (text) => CpuSet.parse(text)));
}

export function devicesOf({ devices }: Snapshot): DeviceAllocations {
  return toMap(devices, (containers) => toMap(containers, (resources) => toMap(resources, (ids) => new Set(ids))));
}

function sorted({ defaultSet, cpus, devices }: Snapshot): Snapshot {
  return { defaultSet, cpus: ordered(cpus), devices: ordered(devices) };
}

/** Keys in order at every level, so that equal snapshots are equal text. */
function ordered<T>(value: T): T {
  if (value === null || typeof value !== 'object' || Array.isArray(value)) return value;
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(entries.map(([key, inner]) => [key, ordered(inner)])) as T;
}

function fromMap<V, W>(map: ReadonlyMap<string, V>, convert: (value: V) => W): Record<string, W> {
  return Object.fromEntries([...map].map(([key, value]) => [key, convert(value)]));
}

function toMap<V, W>(record: Readonly<Record<string, V>>, convert: (value: V) => W): Map<string, W> {
  return new Map(Object.entries(record).map(([key, value]) => [key, convert(value)]));
}
