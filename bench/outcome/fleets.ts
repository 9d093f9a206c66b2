import type { HostDescription } from '../../model/host.ts';

/** Equal nodes and the configuration of their kubelets. */
export interface Fleet {
  /** An identifier: `8-smt-2-restricted` for 8 nodes with SMT, 2 NUMA nodes and the policy restricted. */
  readonly name: string;
  readonly nodes: number;
  /** 2 with SMT, 1 without. */
  readonly threads: 1 | 2;
  readonly cells: 1 | 2 | 4;
  readonly policy: 'best-effort' | 'restricted' | 'single-numa-node';
}

/** Number of CPUs of a node, by its number of NUMA nodes. Each NUMA node can hold the largest VM of the stream. */
const CPUS = { 1: 32, 2: 32, 4: 64 } as const;

/** The physnets of every node: one on the first NUMA node and one on the last. */
export const PHYSNETS = ['physnet0', 'physnet1'] as const;

/** The VFs of a NIC, enough for all VMs that fit on its NUMA node. */
export const VF_RESOURCE = 'openshift.io/sriov_vf';
export const VFS = 16;

const POLICIES: readonly Fleet['policy'][] = ['best-effort', 'restricted', 'single-numa-node'];

function fleet(nodes: number, threads: 1 | 2, cells: 1 | 2 | 4, policy: Fleet['policy']): Fleet {
  return { name: `${nodes}-${threads === 2 ? 'smt' : 'nosmt'}-${cells}-${policy}`, nodes, threads, cells, policy };
}

export const FLEETS: readonly Fleet[] = [8, 50, 500].flatMap((nodes) =>
  ([2, 1] as const).flatMap((threads) =>
    ([1, 2, 4] as const).flatMap((cells) => POLICIES.map((policy) => fleet(nodes, threads, cells, policy))),
  ),
);

/** A host of the fleet. CPUs of a NUMA node: the first threads of its cores, then the second ones. */
export function hostOf({ cells, threads }: Fleet): HostDescription {
  const cores = CPUS[cells] / threads;
  const coresPerCell = cores / cells;
  const range = (first: number) => `${first}-${first + coresPerCell - 1}`;
  return {
    cells: Array.from({ length: cells }, (_, id) => {
      const first = id * coresPerCell;
      return { id, cpus: threads === 2 ? `${range(first)},${range(first + cores)}` : range(first) };
    }),
    cores: Array.from({ length: cores }, (_, core) => (threads === 2 ? `${core},${core + cores}` : `${core}`)),
  };
}

/** CPUs that kubelets reserve for the system: the first core. */
export const reservedOf = (fleet: Fleet): string => String(hostOf(fleet).cores?.[0]);

/** Number of CPUs for VMs. */
export const allocatable = ({ nodes, cells, threads }: Fleet): number => nodes * (CPUS[cells] - threads);

/** The NUMA node of a physnet. */
export const cellOf = (physnet: string, { cells }: Fleet): number => (physnet === PHYSNETS[0] ? 0 : cells - 1);

/** The NUMA node of the VFs, which is not the same on all fleets. */
export const vfCellOf = ({ cells, policy }: Fleet): number => POLICIES.indexOf(policy) % cells;

export const inWords = ({ nodes, threads, cells, policy }: Fleet): string =>
  `${nodes} nodes, ${threads === 2 ? 'SMT' : 'no SMT'}, ${cells} NUMA node${cells === 1 ? '' : 's'}, ${policy}`;
