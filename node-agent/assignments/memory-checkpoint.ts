import * as z from 'zod';
import type { ContainerMemory, PodResources } from '../../kube/kubelet-api/gen/pod-resources.ts';
import type { NodeTopologyStatus } from '../../kube/node-topology.ts';
import { CpuSet } from '../../model/cpu-set.ts';
import { issueText, PlumblineError } from '../../model/errors.ts';
import { MAX_CELL_ID } from '../../model/host.ts';
import { byName } from './checkpoint.ts';

export const MEMORY_CHECKPOINT_FILE = 'memory_manager_state';
/** The largest file that is read, in bytes. A container takes about a hundred. */
export const MAX_MEMORY_CHECKPOINT_BYTES = 1024 * 1024;

type Memory = NonNullable<NodeTopologyStatus['memoryManager']>;
export type CellState = NonNullable<NonNullable<Memory['cells']>[number]['state']>;

/** The memory manager's state by NUMA node, or why it is not known. Empty under policy None. */
export interface MemoryReading {
  readonly cells: ReadonlyMap<number, CellState>;
  /** Bytes that it may assign, in use or not, by NUMA node and type. */
  readonly allocatable?: ReadonlyMap<number, ReadonlyMap<string, number>> | undefined;
  readonly problem?: string | undefined;
}

const NO_MEMORY_STATE: MemoryReading = { cells: new Map() };

const whole = z.number().int().nonnegative();
const cell = whole.max(MAX_CELL_ID - 1);
const block = z.object({ numaAffinity: z.array(cell).min(1), type: z.string().max(64), size: whole });
const table = z.object({ allocatable: whole, reserved: whole, free: whole });
/** Source: pkg/kubelet/cm/memorymanager/state, MemoryManagerCheckpoint. */
const checkpoint = z.object({
  policyName: z.string(),
  machineState: z.record(
    z.string().regex(/^\d{1,4}$/),
    z.object({
      numberOfAssignments: whole,
      memoryMap: z.record(z.string().max(64), table),
      cells: z.array(cell).min(1),
    }),
  ),
  entries: byName.pipe(z.map(z.string(), byName.pipe(z.map(z.string(), z.array(block))))).nullish(),
  podEntries: byName.nullish(),
});

type Checkpoint = z.infer<typeof checkpoint>;
type Block = z.infer<typeof block>;

class MemoryCheckpointError extends PlumblineError {
  constructor(why: string) {
    super('memory-checkpoint', `${MEMORY_CHECKPOINT_FILE}: ${why}`);
  }
}

/** The state at the next admission, which begins with the release of the memory of pods that ended. */
export function readMemoryState(
  text: string,
  pods: readonly PodResources[],
  podsWithCpus: ReadonlySet<string>,
): MemoryReading {
  try {
    const file = parse(text);
    if (file.policyName !== 'Static') return NO_MEMORY_STATE;
    for (const blocks of endedPods(file, pods, podsWithCpus)) for (const ended of blocks) release(file, ended);
    const cells = new Map<number, CellState>();
    const allocatable = new Map<number, ReadonlyMap<string, number>>();
    for (const [id, { numberOfAssignments: blocks, memoryMap, cells: group }] of Object.entries(file.machineState)) {
      const amounts = Object.entries(memoryMap);
      const free = Object.fromEntries(amounts.map(([type, table]) => [type, table.free]));
      cells.set(Number(id), { blocks, group: CpuSet.of(group).toString(), free });
      allocatable.set(Number(id), new Map(amounts.map(([type, table]) => [type, table.allocatable])));
    }
    return { cells, allocatable };
  } catch (error) {
    if (!(error instanceof MemoryCheckpointError)) throw error;
    return { ...NO_MEMORY_STATE, problem: error.message };
  }
}

function parse(text: string): Checkpoint {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    throw new MemoryCheckpointError(`torn: its ${text.length} characters are not complete JSON`);
  }
  const { data, error } = checkpoint.safeParse(json);
  if ((data?.podEntries?.size ?? 0) > 0) {
    throw new MemoryCheckpointError('podEntries: memory of pods as a whole (pod-level managers) is not predicted');
  }
  if (data !== undefined) return data;
  const { path, message } = error.issues[0]!;
  const where = path.join('.').slice(0, 120) || 'the top';
  throw new MemoryCheckpointError(`unknown format at ${where}: ${issueText(message)}`);
}

const blockOf = ({ memoryType: type, size, topology }: ContainerMemory): Block => {
  return { type, size, numaAffinity: (topology?.nodes ?? []).map(({ ID }) => ID) };
};

/** PodResources has no uids: a pod is recognized by its containers' memory, and among equal ones by its CPUs. */
function endedPods(
  { entries }: Checkpoint,
  pods: readonly PodResources[],
  podsWithCpus: ReadonlySet<string>,
): (readonly Block[])[] {
  const remaining = new Map(
    [...(entries ?? [])].map(([uid, containers]) => {
      return [uid, new Set([...containers].map(([name, blocks]) => containerKey(name, blocks)))];
    }),
  );
  for (const { containers } of pods) {
    const keys = containers
      .filter(({ memory }) => memory.length > 0)
      .map(({ name, memory }) => containerKey(name, memory.map(blockOf)));
    if (keys.length === 0) continue;
    const equal = [...remaining].filter(([, ofPod]) => keys.every((key) => ofPod.has(key)));
    const withCpus = equal.filter(([uid]) => podsWithCpus.has(uid));
    const matches = withCpus.length > 0 ? withCpus : equal;
    const [match] = matches;
    const first = keys[0]?.slice(0, 200);
    if (match === undefined) throw new MemoryCheckpointError(`the kubelet lists other memory: ${first}`);
    if (matches.some(([, { size }]) => size !== match[1].size)) {
      throw new MemoryCheckpointError(`pods that cannot be distinguished: ${first}`);
    }
    remaining.delete(match[0]);
  }
  return [...remaining.keys()].map((uid) => [...(entries?.get(uid)?.values() ?? [])].flat());
}

function containerKey(name: string, blocks: readonly Block[]): string {
  const keys = blocks.map(
    ({ type, size, numaAffinity }) => `${type}:${size}:${numaAffinity.toSorted((a, b) => a - b).join('+')}`,
  );
  return `${name} ${keys.sort().join()}`;
}

/** Source: pkg/kubelet/cm/memorymanager/policy_static.go, releaseMemory. */
function release({ machineState }: Checkpoint, { numaAffinity, type, size }: Block): void {
  let open = size;
  for (const id of numaAffinity.toSorted((a, b) => a - b)) {
    const node = machineState[id];
    if (node === undefined) throw new MemoryCheckpointError(`NUMA node ${id} has blocks and no state`);
    node.numberOfAssignments--;
    if (node.numberOfAssignments === 0) node.cells = [id];
    const amounts = node.memoryMap[type];
    if (amounts === undefined) continue;
    const returned = Math.min(open, amounts.reserved);
    open -= returned;
    amounts.reserved -= returned;
    amounts.free += returned;
  }
}
