import type { HostDescription } from '../../model/host.ts';
import { DPU_HOST_LABEL } from '../../model/names.ts';
import type { NodeDescription } from '../../sandbox/cluster/cluster.ts';

export const MASK_NODE = 'smt-off';

export interface DemoNode extends NodeDescription {
  readonly physnets: Readonly<Record<string, readonly number[]>>;
  readonly dpu?: true;
  readonly about: string;
}

function oneSocket(cores: number, threads: number): HostDescription {
  const cpus = cores * threads;
  return {
    cells: [{ id: 0, cpus: `0-${cpus - 1}` }],
    cores: Array.from({ length: cores }, (_, core) =>
      Array.from({ length: threads }, (_, thread) => core + thread * cores).join(','),
    ),
  };
}

/** Two sockets with alternating CPU ids: even on NUMA node 0, odd on 1, as in the firmware of many vendors. */
function twoSocketsInTurns(coresEach: number): HostDescription {
  const cores = coresEach * 2;
  const ids = (parity: number) => Array.from({ length: coresEach * 2 }, (_, i) => 2 * i + parity).join(',');
  return {
    cells: [
      { id: 0, cpus: ids(0) },
      { id: 1, cpus: ids(1) },
    ],
    cores: Array.from({ length: cores }, (_, core) => `${core},${core + cores}`),
  };
}

export const DEMO_NODES: readonly DemoNode[] = [
  {
    name: 'smt2',
    host: oneSocket(8, 2),
    physnets: { physnet0: [0] },
    about: '8 cores x 2 threads, one NUMA node, physnet0',
  },
  {
    name: MASK_NODE,
    host: oneSocket(12, 1),
    // Not its first CPU: a machine with one CPU only has that one, and a mask excludes reserved CPUs.
    reserved: '11',
    physnets: { physnet0: [0] },
    about: '12 cores x 1 thread, one NUMA node, physnet0',
  },
  {
    name: 'numa1',
    host: twoSocketsInTurns(6),
    physnets: { physnet1: [1] },
    about: '2 x 6 cores x 2 threads, two NUMA nodes, physnet1 on NUMA node 1',
  },
  {
    name: 'dpu',
    host: oneSocket(8, 2),
    physnets: {},
    labels: { [DPU_HOST_LABEL]: '' },
    dpu: true,
    about: '8 cores x 2 threads, its network runs on a DPU',
  },
];
