import type { NodeTopology } from '../../kube/node-topology.ts';
import { CpuSet, unionOf } from '../../model/cpu-set.ts';
import { PlumblineError } from '../../model/errors.ts';
import { usageError } from '../support/exit-status.ts';

/** Hypothetical nodes, from the command line. */
export interface Invention {
  readonly nodes: number;
  /** `2x16x2`: NUMA nodes, cores of each, threads of each core. */
  readonly topology: string;
  /** CPU list; default: the first core. */
  readonly reserved?: string | undefined;
  /** `physnet0=0`, `physnet1=0-1`. */
  readonly physnet: readonly string[];
  readonly topologyManager: string;
  readonly kubelet: string;
}

const MAX_NODES = 10_000;

/**
 * Creates equal nodes. CPUs are numbered as Linux does on servers: the first threads of all cores, then the second.
 * @throws CliError
 */
export function inventNodes(invention: Invention): NodeTopology[] {
  const { nodes, topology, topologyManager, kubelet } = invention;
  if (!Number.isInteger(nodes) || nodes < 1 || nodes > MAX_NODES) {
    throw usageError(`--nodes ${nodes}: expected 1 to ${MAX_NODES}`);
  }
  const [, sockets = 0, coresEach = 0, threads = 0] = (/^(\d{1,2})x(\d{1,3})x(\d)$/.exec(topology) ?? []).map(Number);
  if (sockets < 1 || sockets > 8 || coresEach < 1 || threads < 1 || threads > 8) {
    const form = 'NUMA nodes (1 to 8) x cores of each x threads of a core (1 to 8)';
    throw usageError(`--topology ${topology}: expected ${form}, such as 2x16x2`);
  }
  const cores = sockets * coresEach;
  const siblings = (core: number) => CpuSet.of(Array.from({ length: threads }, (_, thread) => core + thread * cores));
  const cells = Array.from({ length: sockets }, (_, cell) => {
    const own = Array.from({ length: coresEach }, (_, i) => siblings(cell * coresEach + i));
    return { id: cell, cpus: unionOf(own).toString() };
  });
  const reserved = invention.reserved === undefined ? siblings(0) : cpuList('--reserved', invention.reserved);
  const status = {
    kubeletVersion: kubelet,
    cells,
    cores: Array.from({ length: cores }, (_, core) => siblings(core).toString()),
    reserved: reserved.toString(),
    cpuManager: { policy: 'static', options: threads > 1 ? { 'full-pcpus-only': 'true' } : {} },
    topologyManager: { policy: topologyManager, scope: 'container' },
    assignments: [],
    physnets: invention.physnet.map((text) => physnetOf(text, sockets)),
  };
  const digits = String(nodes - 1).length;
  return Array.from({ length: nodes }, (_, i) => ({
    apiVersion: 'plumbline.dev/v1alpha1' as const,
    kind: 'NodeTopology' as const,
    metadata: { name: `node-${String(i).padStart(digits, '0')}` } as NodeTopology['metadata'],
    status,
  }));
}

function physnetOf(text: string, sockets: number): { name: string; cells: string } {
  const [, name = '', list = ''] = /^([^=]+)=(.+)$/.exec(text) ?? [];
  if (name === '') throw usageError(`--physnet ${text}: expected NAME=NUMA-NODES, such as physnet0=0`);
  const cells = cpuList('--physnet', list);
  const foreign = cells.toArray().find((cell) => cell >= sockets);
  if (foreign !== undefined) throw usageError(`--physnet ${text}: there is no NUMA node ${foreign}`);
  return { name, cells: cells.toString() };
}

function cpuList(flag: string, text: string): CpuSet {
  try {
    return CpuSet.parse(text);
  } catch (error) {
    if (error instanceof PlumblineError) throw usageError(`${flag} ${text}: ${error.message}`);
    throw error;
  }
}
