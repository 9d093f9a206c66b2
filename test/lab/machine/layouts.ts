/** What the emulated machine is made of. CPUs are numbered thread by thread, core by core and NUMA node by NUMA node. */
export interface Layout {
  readonly name: string;
  /** NUMA nodes. */
  readonly nodes: number;
  readonly sockets: number;
  /** Of a socket. Each has a last-level cache of its own, as QEMU emulates it. */
  readonly dies: number;
  /** Of a die. */
  readonly cores: number;
  /** MiB a NUMA node. */
  readonly memory: number;
  /** Huge pages of 2 MiB a NUMA node. */
  readonly hugePages: number;
  /** Between NUMA nodes, row by row, as the firmware tells them. Absent: 20 between any two. */
  readonly distances?: readonly (readonly number[])[];
}

/** Of a core. */
export const THREADS = 2;

/** Each NUMA node is a socket of two cores: CPUs 0-3 and 4-7, siblings 0-1, 2-3 | 4-5, 6-7. */
const TWO_NODES: Layout = {
  name: 'two-nodes',
  nodes: 2,
  sockets: 2,
  dies: 1,
  cores: 2,
  memory: 2048,
  hugePages: 32,
};

/** Each NUMA node is a socket of two uncore caches of two cores: 0-3, 4-7 | 8-11, 12-15. */
const UNCORES: Layout = { ...TWO_NODES, name: 'uncores', dies: 2 };

/** Two sockets of two NUMA nodes of two cores, not equally far from each other: 0-3, 4-7 | 8-11, 12-15. */
const FOUR_NODES: Layout = {
  ...UNCORES,
  name: 'four-nodes',
  nodes: 4,
  memory: 1024,
  hugePages: 16,
  distances: [
    [10, 12, 20, 24],
    [12, 10, 24, 20],
    [20, 24, 10, 12],
    [24, 20, 12, 10],
  ],
};

export const LAYOUTS = { 'two-nodes': TWO_NODES, uncores: UNCORES, 'four-nodes': FOUR_NODES } as const;
export type LayoutName = keyof typeof LAYOUTS;

export function cpuCount({ sockets, dies, cores }: Layout): number {
  return sockets * dies * cores * THREADS;
}
