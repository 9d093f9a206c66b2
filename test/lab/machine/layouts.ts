/** The parts of the emulated machine. CPUs are numbered by thread, then core, then NUMA node. */
export interface Layout {
  readonly name: string;
  readonly nodes: number;
  readonly sockets: number;
  readonly dies: number;
  readonly cores: number;
  /** MiB per NUMA node. */
  readonly memory: number;
  /** Huge pages of 2 MiB per NUMA node. */
  readonly hugePages: number;
  /** Huge pages of 1 GiB per NUMA node; the kernel moves those that a memory hole splits. Default: none. */
  readonly gigabytePages?: number;
  /** NICs of each of the first two NUMA nodes, for a device plugin. Default: none. */
  readonly pluginNics?: number;
  /** Between NUMA nodes, row by row, as the firmware reports them. Absent: 20 between any two. */
  readonly distances?: readonly (readonly number[])[];
}

export const THREADS = 2;

/** Each NUMA node is a socket with two cores: CPUs 0-3 and 4-7, siblings 0-1, 2-3 | 4-5, 6-7. */
const TWO_NODES: Layout = {
  name: 'two-nodes',
  nodes: 2,
  sockets: 2,
  dies: 1,
  cores: 2,
  memory: 2048,
  hugePages: 32,
};

/** Each NUMA node is a socket with two uncore caches of two cores: 0-3, 4-7 | 8-11, 12-15. */
const UNCORES: Layout = { ...TWO_NODES, name: 'uncores', dies: 2 };

/** Two sockets with two NUMA nodes of two cores, at different distances: 0-3, 4-7 | 8-11, 12-15. */
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

const GIGABYTE_PAGES: Layout = { ...TWO_NODES, name: 'gigabyte-pages', memory: 4096, gigabytePages: 2, pluginNics: 4 };

export const LAYOUTS = {
  'two-nodes': TWO_NODES,
  uncores: UNCORES,
  'four-nodes': FOUR_NODES,
  'gigabyte-pages': GIGABYTE_PAGES,
} as const;
export type LayoutName = keyof typeof LAYOUTS;

export function cpuCount({ sockets, dies, cores }: Layout): number {
  return sockets * dies * cores * THREADS;
}
