import { open, readFile, rename, writeFile } from 'node:fs/promises';
import * as z from 'zod';
import { deviceCheckpoint } from '../../kube/kubelet-api/device-checkpoint.ts';
import { CpuSet, unionOf } from '../../model/cpu-set.ts';
import { PlumblineError } from '../../model/errors.ts';
import type { DeviceAllocations } from '../../model/kubelet/devices.ts';
import type { MemoryBlock, MemoryState } from '../../model/kubelet/memory-state.ts';
import type { CpuAssignments } from '../../model/kubelet/state.ts';

interface CpuState {
  readonly defaultSet: CpuSet;
  readonly assignments: CpuAssignments;
}

/** cpu_manager_state, written in the same steps as by the kubelet. */
export type StateFile = Awaited<ReturnType<typeof createStateFile>>;

export class StateFileError extends PlumblineError {
  constructor(path: string, why: string, options?: ErrorOptions) {
    super('cpu-manager-state', `${path}: ${why}; drain the node and remove the file`, options);
  }
}

const form = z.object({
  policyName: z.string(),
  defaultCpuSet: z.string(),
  entries: z.record(z.string(), z.record(z.string(), z.string())).optional(),
  checksum: z.number(),
});

/**
 * Reads a state file, or undefined if there is none yet.
 * @throws StateFileError if it is torn, has a wrong checksum, or was written by another policy
 */
export async function readStateFile(path: string, policyName: string): Promise<CpuState | undefined> {
  const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined;
    throw error;
  });
  if (text === undefined) return undefined;
  const parsed = form.safeParse(parseJson(path, text));
  if (!parsed.success) throw new StateFileError(path, 'not a CPU manager checkpoint', { cause: parsed.error });
  const { policyName: written, defaultCpuSet, entries = {}, checksum } = parsed.data;
  if (checkpointChecksum(written, defaultCpuSet, entries) !== checksum) {
    throw new StateFileError(path, 'checkpoint is corrupted');
  }
  if (written !== policyName) {
    throw new StateFileError(
      path,
      `configured policy "${policyName}" differs from state checkpoint policy "${written}"`,
    );
  }
  const assignments = new Map(
    Object.entries(entries).map(([uid, containers]) => [
      uid,
      new Map(Object.entries(containers).map(([name, list]) => [name, CpuSet.parse(list)])),
    ]),
  );
  return { defaultSet: CpuSet.parse(defaultCpuSet), assignments };
}

/** Writes the initial state and keeps the file up to date from there. Calls must not overlap. */
export async function createStateFile(path: string, policyName: string, initial: CpuState) {
  let { defaultSet } = initial;
  const assignments = new Map([...initial.assignments].map(([uid, containers]) => [uid, new Map(containers)]));

  const write = async () => {
    const textsOf = (containers: ReadonlyMap<string, CpuSet>) =>
      Object.fromEntries([...containers].map(([name, cpus]) => [name, cpus.toString()]));
    const entries = Object.fromEntries([...assignments].map(([uid, containers]) => [uid, textsOf(containers)]));
    const text = JSON.stringify({
      policyName,
      defaultCpuSet: defaultSet.toString(),
      ...(assignments.size > 0 && { entries }),
      checksum: checkpointChecksum(policyName, defaultSet.toString(), entries),
    });
    await replaceFile(path, text);
  };
  await write();

  return {
    get state(): CpuState {
      return { defaultSet, assignments };
    },
    /** Removes CPUs from the shared pool, then adds them to the container: two writes. */
    async assign(uid: string, container: string, cpus: CpuSet) {
      defaultSet = defaultSet.minus(cpus);
      await write();
      const containers = assignments.get(uid) ?? new Map<string, CpuSet>();
      assignments.set(uid, containers.set(container, cpus));
      await write();
    },
    /** For each container: removes its entry, then adds the CPUs that no other container has to the pool. */
    async release(uid: string) {
      const containers = assignments.get(uid);
      for (const [name, cpus] of [...(containers ?? [])]) {
        containers?.delete(name);
        if (containers?.size === 0) assignments.delete(uid);
        await write();
        defaultSet = defaultSet.union(cpus.minus(unionOf(containers?.values() ?? [])));
        await write();
      }
    },
  };
}

/** Writes a temporary file, syncs and renames it: readers see the old or the new state, never a part. */
async function replaceFile(path: string, text: string): Promise<void> {
  const temporary = `${path}.tmp`;
  const file = await open(temporary, 'w', 0o600);
  try {
    await file.writeFile(text);
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(temporary, path);
}

function parseJson(path: string, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new StateFileError(path, 'torn', { cause: error });
  }
}

/**
 * cpu_manager_state: FNV-1a over a Go dump with checksum zero. Source: pkg/kubelet/checkpointmanager/checksum,
 * apimachinery/pkg/util/dump.
 */

type Entries = Readonly<Record<string, Readonly<Record<string, string>>>>;

export function checkpointChecksum(policyName: string, defaultCpuSet: string, entries: Entries): number {
  const pods = dump(entries, (containers) => `(map[string]string)${dump(containers, (cpus) => `(string)${cpus}`)}`);
  return fnv32a(
    `(*state.CPUManagerCheckpoint){PolicyName:(string)${policyName} DefaultCPUSet:(string)${defaultCpuSet} ` +
      `Entries:(map[string]map[string]string)${pods} Checksum:(checksum.Checksum)0}`,
  );
}

function dump<V>(map: Readonly<Record<string, V>>, value: (entry: V) => string): string {
  const sorted = Object.entries(map).sort(([a], [b]) => (a < b ? -1 : 1));
  return `map[${sorted.map(([key, entry]) => `(string)${key}:${value(entry)}`).join(' ')}]`;
}

function fnv32a(text: string): number {
  let hash = 0x811c9dc5;
  for (const byte of Buffer.from(text, 'utf8')) hash = Math.imul(hash ^ byte, 0x01000193);
  return hash >>> 0;
}

export const MEMORY_STATE_FILE = 'memory_manager_state';

export const nodesOfMask = (mask: number, numaIds: readonly number[]) =>
  numaIds.filter((_, bit) => (mask & (1 << bit)) !== 0);

/** The memory manager's state. Source: pkg/kubelet/cm/memorymanager/state/checkpoint.go. */
export async function writeMemoryState(
  path: string,
  memory: MemoryState | undefined,
  numaIds: readonly number[],
): Promise<void> {
  const blockOf = ({ mask, type, size }: MemoryBlock) => ({ numaAffinity: nodesOfMask(mask, numaIds), type, size });
  const cells = (memory?.cells ?? []).map(({ blocks, group, tables }, bit) => {
    const memoryMap = [...tables].map(([type, { allocatable, free }]) => {
      const amounts = { total: allocatable, systemReserved: 0, allocatable, reserved: allocatable - free, free };
      return [type, amounts];
    });
    const node = {
      numberOfAssignments: blocks,
      memoryMap: Object.fromEntries(memoryMap),
      cells: nodesOfMask(group, numaIds),
    };
    return [numaIds[bit], node];
  });
  const entries = [...(memory?.blocks ?? [])].map(([uid, containers]) => [
    uid,
    Object.fromEntries([...containers].map(([name, blocks]) => [name, blocks.map(blockOf)])),
  ]);
  const state = {
    policyName: memory === undefined ? 'None' : 'Static',
    machineState: Object.fromEntries(cells),
    ...(entries.length > 0 && { entries: Object.fromEntries(entries) }),
    checksum: 0,
  };
  await writeFile(`${path}.tmp`, JSON.stringify(state));
  await rename(`${path}.tmp`, path);
}

export async function readDeviceCheckpoint(path: string): Promise<DeviceAllocations> {
  const text = await readFile(path, 'utf8').catch(() => undefined);
  const pods = new Map<string, Map<string, Map<string, ReadonlySet<string>>>>();
  if (text === undefined) return pods;
  for (const entry of deviceCheckpoint.parse(JSON.parse(text)).Data.PodDeviceEntries ?? []) {
    const containers = pods.get(entry.PodUID) ?? new Map<string, Map<string, ReadonlySet<string>>>();
    const resources = containers.get(entry.ContainerName) ?? new Map<string, ReadonlySet<string>>();
    resources.set(entry.ResourceName, new Set(Object.values(entry.DeviceIDs).flat()));
    pods.set(entry.PodUID, containers.set(entry.ContainerName, resources));
  }
  return pods;
}

export async function writeDeviceCheckpoint(path: string, allocations: DeviceAllocations): Promise<void> {
  const entries = [...allocations].flatMap(([PodUID, containers]) =>
    [...containers].flatMap(([ContainerName, resources]) =>
      [...resources].map(([ResourceName, ids]) => ({
        PodUID,
        ContainerName,
        ResourceName,
        DeviceIDs: { '-1': [...ids] },
      })),
    ),
  );
  await writeFile(
    `${path}.tmp`,
    JSON.stringify({ Data: { PodDeviceEntries: entries, RegisteredDevices: {} }, Checksum: 0 }),
  );
  await rename(`${path}.tmp`, path);
}
