import type { DemoNode } from '../../../cli/demo/nodes.ts';
import type { HostDescription } from '../../../model/host.ts';
import { DPU_HOST_LABEL } from '../../../model/names.ts';

function oneCell(cores: number): HostDescription {
  return {
    cells: [{ id: 0, cpus: `0-${2 * cores - 1}` }],
    cores: Array.from({ length: cores }, (_, core) => `${core},${core + cores}`),
  };
}

/** Two NUMA nodes with alternating CPUs, so that both include some of the first two, which every machine has. */
function twoCells(coresEach: number): HostDescription {
  const cores = 2 * coresEach;
  const cpus = (parity: number) => Array.from({ length: cores }, (_, i) => 2 * i + parity).join(',');
  return {
    cells: [
      { id: 0, cpus: cpus(0) },
      { id: 1, cpus: cpus(1) },
    ],
    cores: Array.from({ length: cores }, (_, core) => `${core},${core + cores}`),
  };
}

/** The node whose agent manages an Open vSwitch. */
export const VSWITCH_NODE = 'two-a';
export const DPU_NODE = 'dpu';

export const NODES: readonly DemoNode[] = [
  { name: VSWITCH_NODE, host: twoCells(6), physnets: { physnet1: [1] }, about: 'two cells, Open vSwitch' },
  { name: 'two-b', host: twoCells(6), physnets: { physnet1: [1] }, about: 'two cells' },
  { name: 'one', host: oneCell(8), physnets: { physnet0: [0] }, about: 'one cell' },
  {
    name: DPU_NODE,
    host: oneCell(8),
    physnets: {},
    labels: { [DPU_HOST_LABEL]: '' },
    dpu: true,
    about: 'its network runs on a DPU',
  },
];

/**
 * The groups of VMs and how many of each live at once: so few that there is always room for one more. On the two NUMA
 * nodes near physnet1, with 12 CPUs each, any three VMs of up to 6 leave 6 on one of them; near physnet0 and on the
 * DPU's node there are 14.
 */
export interface Group {
  readonly name: string;
  readonly live: number;
  readonly physnet?: string;
  readonly node?: string;
}

export const GROUPS: readonly Group[] = [
  { name: 'p1', live: 4, physnet: 'physnet1' },
  { name: 'p0', live: 2, physnet: 'physnet0' },
  { name: 'dpu', live: 2, node: DPU_NODE },
];
