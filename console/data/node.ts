import { CpuSet } from '../../model/cpu-set.ts';
import type { Shape } from './shape.ts';
import type { DpuState, NodeContent, NodeProblem, OwnerEntry } from './wire.ts';

/** The owner of a thread. Values from `Paint.owner`: the node's first owner, its second, … */
export const Paint = { free: 0, reserved: 1, polled: 2, inFlight: 3, owner: 4 } as const;
const MAX_OWNER_VALUES = 250;

export type NodeItem = Readonly<ReturnType<typeof nodeItem>>;

export function nodeItem(name: string, shape: Shape | undefined, content: NodeContent, before?: Marked) {
  const { owners, inFlight } = content;
  const paint = new Uint8Array(shape?.slots.length ?? 0);
  /** For each slot, 1 for CPUs that were added for whole cores and that have no pinned vCPU. */
  const padding = new Uint8Array(paint.length);
  if (shape !== undefined) {
    for (const slot of shape.reserved) paint[slot] = Paint.reserved;
    for (const slot of shape.polled) paint[slot] = Paint.polled;
    for (const [, , cpus] of inFlight) for (const slot of cpuSlots(shape, cpus)) paint[slot] = Paint.inFlight;
    owners.forEach(([, , cpus, padded], index) => {
      const slots = cpuSlots(shape, cpus);
      for (const slot of slots) paint[slot] = Paint.owner + Math.min(index, MAX_OWNER_VALUES);
      // KubeVirt takes whole cores in this order for vCPUs, then for the emulator: the added CPUs are those at the end.
      if (padded > 0) for (const slot of slots.sort((a, b) => a - b).slice(-padded)) padding[slot] = 1;
    });
  }
  return {
    ...content,
    name,
    shape,
    marks: marksOf(owners, before),
    paint,
    padding,
    freeCores: shape === undefined ? 0 : freeCoresOf(shape, paint),
    pods: new Set(owners.map(([pod]) => pod)).size,
  };
}

/** @param cpus a set, or a CPU list */
export function cpuSlots(shape: Shape, cpus: CpuSet | string): number[] {
  const set = typeof cpus === 'string' ? CpuSet.parse(cpus) : cpus;
  return [...set].flatMap((cpu) => shape.slotOf.get(cpu) ?? []);
}

function freeCoresOf({ cores }: Shape, paint: Uint8Array): number {
  const isFree = (slot: number) => paint[slot] === Paint.free;
  return cores.filter(({ first, threads }) => Array.from({ length: threads }, (_, k) => first + k).every(isFree))
    .length;
}

export const PROBLEM_TEXT: Readonly<Record<NodeProblem, { readonly short: string; readonly long: string }>> = {
  'dpu-dead': {
    short: 'DPU not ready',
    long: 'Its DPU stopped renewing its Lease: pods that need it are placed on other nodes.',
  },
  'dpu-restarted': {
    short: 'Networks lost',
    long: 'Its DPU restarted: pods and VMs that were connected before have lost their network.',
  },
  silent: { short: 'Agent silent', long: 'Its agent stopped renewing its Lease: the data of this node is old.' },
  quarantined: {
    short: 'Report rejected',
    long: 'Its report contradicts its Node object or cannot be read, so Plumbline ignores it: see its Events.',
  },
  'no-report': { short: 'No report', long: 'KubeVirt starts VMs here, but no agent reports: its CPUs are unknown.' },
  'dra-cpu': { short: 'dra.cpu', long: 'The dra.cpu driver gives its exclusive CPUs to claims only.' },
  'no-node': { short: 'No Node', long: 'A report exists, but the API server has no Node with this name.' },
};

export const DPU_TEXT: Readonly<Record<DpuState, string>> = {
  '': 'none',
  alive: 'ready',
  dead: 'not ready',
  unknown: 'unknown: the Node has no condition plumbline.dev/DPUReady',
};

/** Number of colours for owners. Further owners reuse them; the letter still distinguishes them. */
export const COLOUR_COUNT = 6;

interface Marked {
  readonly owners: readonly OwnerEntry[];
  readonly marks: readonly number[];
}

/** A pod keeps its colour while others come and go; a new one gets that of its name, the same on every page. */
function marksOf(owners: readonly OwnerEntry[], before?: Marked): number[] {
  const pods = new Set(owners.map(([pod]) => pod));
  const previous = before?.owners.map(([pod], index) => [pod, before.marks[index]!] as const) ?? [];
  const marks = new Map(previous.filter(([pod]) => pods.has(pod)));
  const used = new Set(marks.values());
  // By name, because the order of a report has no meaning.
  for (const pod of [...pods].filter((pod) => !marks.has(pod)).sort()) {
    const mark = freeMark(hashOf(pod) % COLOUR_COUNT, used);
    used.add(mark);
    marks.set(pod, mark);
  }
  return owners.map(([pod]) => marks.get(pod)!);
}

/** The preferred number, else another of the first colours, else a later one of the preferred colour. */
function freeMark(preferred: number, used: ReadonlySet<number>): number {
  for (let step = 0; step < COLOUR_COUNT; step++) {
    const near = (preferred + step) % COLOUR_COUNT;
    if (!used.has(near)) return near;
  }
  let mark = preferred + COLOUR_COUNT;
  while (used.has(mark)) mark += COLOUR_COUNT;
  return mark;
}

function hashOf(text: string): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193) >>> 0;
  return hash;
}
