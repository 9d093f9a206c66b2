import { readFile, rename, writeFile } from 'node:fs/promises';
import { deviceCheckpoint } from '../../kube/kubelet-api/device-checkpoint.ts';
import { CpuSet, unionOf } from '../../model/cpu-set.ts';
import { PlumblineError } from '../../model/errors.ts';
import type { DeviceAllocations } from '../../model/kubelet/devices.ts';
import type { CpuAssignments } from '../../model/kubelet/state.ts';

interface CpuState {
  readonly defaultSet: CpuSet;
  readonly assignments: CpuAssignments;
}

export class StateFileError extends PlumblineError {
  constructor(path: string, why: string) {
    super('cpu-manager-state', `${path}: ${why}; drain the node and remove the file`);
  }
}

type Entries = Readonly<Record<string, Readonly<Record<string, string>>>>;

interface CpuManagerCheckpoint {
  readonly policyName: string;
  readonly defaultCpuSet: string;
  readonly entries?: Entries;
  readonly checksum: number;
}

const readIfPresent = (path: string) =>
  readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined;
    throw error;
  });

/** Undefined if there is no file yet. @throws StateFileError if another policy or another program wrote it */
export async function readStateFile(path: string, policyName: string): Promise<CpuState | undefined> {
  const text = await readIfPresent(path);
  if (text === undefined) return undefined;
  const { policyName: written, defaultCpuSet, entries = {}, checksum } = JSON.parse(text) as CpuManagerCheckpoint;
  if (checkpointChecksum(written, defaultCpuSet, entries) !== checksum) {
    throw new StateFileError(path, 'checkpoint is corrupted');
  }
  if (written !== policyName) {
    const why = `configured policy "${policyName}" differs from state checkpoint policy "${written}"`;
    throw new StateFileError(path, why);
  }
  const assignments = new Map(
    Object.entries(entries).map(([uid, containers]) => [
      uid,
      new Map(Object.entries(containers).map(([name, list]) => [name, CpuSet.parse(list)])),
    ]),
  );
  return { defaultSet: CpuSet.parse(defaultCpuSet), assignments };
}

/** Writes cpu_manager_state, and keeps it up to date in the same steps as the kubelet. Calls must not overlap. */
export async function createStateFile(path: string, policyName: string, initial: CpuState) {
  let { defaultSet } = initial;
  const assignments = new Map([...initial.assignments].map(([uid, containers]) => [uid, new Map(containers)]));

  const write = async () => {
    const textsOf = (containers: ReadonlyMap<string, CpuSet>) =>
      Object.fromEntries([...containers].map(([name, cpus]) => [name, cpus.toString()]));
    const entries = Object.fromEntries([...assignments].map(([uid, containers]) => [uid, textsOf(containers)]));
    const checkpoint: CpuManagerCheckpoint = {
      policyName,
      defaultCpuSet: defaultSet.toString(),
      ...(assignments.size > 0 && { entries }),
      checksum: checkpointChecksum(policyName, defaultSet.toString(), entries),
    };
    await replaceFile(path, JSON.stringify(checkpoint));
  };
  await write();

  return {
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

/** Readers see the old or the new file, never a part. */
export async function replaceFile(path: string, text: string): Promise<void> {
  await writeFile(`${path}.tmp`, text, { mode: 0o600 });
  await rename(`${path}.tmp`, path);
}

/** FNV-1a over a Go dump with checksum zero. Source: pkg/kubelet/checkpointmanager/checksum, apimachinery/pkg/util/dump. */
function checkpointChecksum(policyName: string, defaultCpuSet: string, entries: Entries): number {
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

export async function readDeviceCheckpoint(path: string): Promise<DeviceAllocations> {
  const text = await readIfPresent(path);
  const pods = new Map<string, Map<string, Map<string, ReadonlySet<string>>>>();
  if (text === undefined) return pods;
  for (const { PodUID, ContainerName, ResourceName, DeviceIDs } of deviceCheckpoint.parse(JSON.parse(text)).Data
    .PodDeviceEntries ?? []) {
    const containers = pods.get(PodUID) ?? new Map<string, Map<string, ReadonlySet<string>>>();
    const resources = containers.get(ContainerName) ?? new Map<string, ReadonlySet<string>>();
    resources.set(ResourceName, new Set(Object.values(DeviceIDs).flat()));
    pods.set(PodUID, containers.set(ContainerName, resources));
  }
  return pods;
}

export async function writeDeviceCheckpoint(path: string, allocations: DeviceAllocations): Promise<void> {
  const entries = [...allocations].flatMap(([PodUID, containers]) =>
    [...containers].flatMap(([ContainerName, resources]) =>
      [...resources].map(([ResourceName, ids]) => {
        return { PodUID, ContainerName, ResourceName, DeviceIDs: { '-1': [...ids] } };
      }),
    ),
  );
  const checkpoint = { Data: { PodDeviceEntries: entries, RegisteredDevices: {} }, Checksum: 0 };
  await replaceFile(path, JSON.stringify(checkpoint));
}
