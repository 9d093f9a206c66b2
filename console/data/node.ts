import { parseCpus } from './cpu-list.ts';
import { marksOf } from './marks.ts';
import type { Shape } from './shape.ts';
import { type DpuSince, type DpuState, type InFlightEntry, NodeFlag, type OwnerEntry } from './wire.ts';

/** The owner of a thread. Values from `Paint.owner`: the node's first owner, its second, … */
export const Paint = { free: 0, reserved: 1, polled: 2, inFlight: 3, owner: 4 } as const;
/** Number of owners with a separate value; the last value stands for all others. */
const MOST_OWNERS = 250;

export type Problem = 'dpu-dead' | 'silent' | 'quarantined' | 'no-report' | 'dra-cpu' | 'no-node';

export interface NodeItem {
  readonly id: number;
  readonly name: string;
  readonly shape: Shape | undefined;
  readonly flags: number;
  readonly dpu: DpuState;
  readonly dpuSince?: DpuSince | undefined;
  readonly owners: readonly OwnerEntry[];
  /** For each owner, the number of its colour and letter, which stays the same while other owners come and go. */
  readonly marks: readonly number[];
  readonly inFlight: readonly InFlightEntry[];
  readonly resources: readonly (readonly [resource: string, text: string])[];
  /** For each slot of the shape, the owner. */
  readonly paint: Uint8Array;
  /** For each slot, 1 for CPUs that were added for whole cores and that have no pinned vCPU. */
  readonly padding: Uint8Array;
  readonly freeCores: number;
  /** Number of pods that own CPUs. */
  readonly pods: number;
  readonly problems: readonly Problem[];
  /** Increases with every change of any node. */
  readonly change: number;
}

export type NodeParts = Pick<
  NodeItem,
  'id' | 'name' | 'shape' | 'flags' | 'dpu' | 'dpuSince' | 'owners' | 'inFlight' | 'resources' | 'change'
>;

const NOTHING = new Uint8Array(0);

type Before = Pick<NodeItem, 'owners' | 'marks'> & Partial<Pick<NodeItem, 'paint' | 'padding'>>;

/**
 * @param before the previous state of the same node; the result has its `marks`, `paint` and `padding` if they are
 *   equal, so that a view recognizes that nothing changed on its map
 */
export function nodeItem(parts: NodeParts, before?: Before): NodeItem {
  const { shape, owners, inFlight } = parts;
  const marks = equalOr(before?.marks, marksOf(owners, before));
  const pods = new Set(owners.map(([pod]) => pod)).size;
  const problems = problemsOf(parts);
  if (shape === undefined) return { ...parts, marks, paint: NOTHING, padding: NOTHING, freeCores: 0, pods, problems };
  const paint = new Uint8Array(shape.slots.length);
  const padding = new Uint8Array(shape.slots.length);
  for (const slot of shape.reserved) paint[slot] = Paint.reserved;
  for (const slot of shape.polled) paint[slot] = Paint.polled;
  for (const [, , cpus] of inFlight) for (const slot of slotsOf(shape, cpus)) paint[slot] = Paint.inFlight;
  owners.forEach(([, , cpus, padded], index) => {
    const slots = slotsOf(shape, cpus);
    for (const slot of slots) paint[slot] = Paint.owner + Math.min(index, MOST_OWNERS);
    // KubeVirt takes whole cores in this order for vCPUs, then for the emulator: the added CPUs are those at the end.
    if (padded > 0) for (const slot of slots.sort((a, b) => a - b).slice(-padded)) padding[slot] = 1;
  });
  return {
    ...parts,
    marks,
    paint: equalOr(before?.paint, paint),
    padding: equalOr(before?.padding, padding),
    freeCores: freeCoresOf(shape, paint),
    pods,
    problems,
  };
}

/** The previous list if it is equal to the new one. */
function equalOr<List extends ArrayLike<number>>(before: List | undefined, now: List): List {
  if (before?.length !== now.length) return now;
  for (let i = 0; i < now.length; i++) if (before[i] !== now[i]) return now;
  return before;
}

export function slotsOf(shape: Shape, cpus: string): number[] {
  return parseCpus(cpus).flatMap((cpu) => shape.slotOf.get(cpu) ?? []);
}

function freeCoresOf({ cores }: Shape, paint: Uint8Array): number {
  let free = 0;
  for (const { first, threads } of cores) {
    let used = 0;
    for (let slot = first; slot < first + threads; slot++) used |= paint[slot]!;
    if (used === 0) free++;
  }
  return free;
}

function problemsOf({ flags, shape }: NodeParts): Problem[] {
  const has = (flag: number) => (flags & flag) !== 0;
  return [
    ...(has(NodeFlag.dpuHost) && has(NodeFlag.dpuDead) ? (['dpu-dead'] as const) : []),
    ...(has(NodeFlag.stale) ? (['silent'] as const) : []),
    ...(has(NodeFlag.quarantined) ? (['quarantined'] as const) : []),
    ...(shape === undefined && !has(NodeFlag.quarantined) ? (['no-report'] as const) : []),
    ...(has(NodeFlag.draCpu) ? (['dra-cpu'] as const) : []),
    ...(has(NodeFlag.node) ? [] : (['no-node'] as const)),
  ];
}

export const PROBLEM_TEXT: Readonly<Record<Problem, { readonly short: string; readonly long: string }>> = {
  'dpu-dead': {
    short: 'DPU dead',
    long: 'Its DPU stopped renewing its Lease: pods that need it are placed on other nodes.',
  },
  silent: { short: 'agent silent', long: 'Its agent stopped renewing its Lease: the data shown here is old.' },
  quarantined: {
    short: 'quarantined',
    long: 'Its report contradicts its Node object or cannot be read, so Plumbline ignores it: see its Events.',
  },
  'no-report': { short: 'no report', long: 'No agent has reported this node: its CPUs are unknown.' },
  'dra-cpu': { short: 'dra.cpu', long: 'The dra.cpu driver assigns its CPUs, and so may the kubelet.' },
  'no-node': { short: 'no Node', long: 'A report exists, but the API server has no Node with this name.' },
};

export const DPU_TEXT: Readonly<Record<DpuState, string>> = {
  '': 'none',
  alive: 'alive, as the node’s condition says',
  dead: 'dead, as the node’s condition says',
  unknown: 'unknown: the node does not have the condition',
};
