import type { CpuSet } from '../cpu-set.ts';
import type { Sorting } from './accumulator.ts';
import { takeDistributed } from './distributed.ts';
import type { CpuOptions } from './options.ts';
import { takePacked } from './packed.ts';
import type { CpuTopology } from './topology.ts';

/**
 * Takes CPUs as the static policy does with the given options.
 * @throws TakeError with the kubelet's message
 * Source: pkg/kubelet/cm/cpumanager/policy_static.go, takeByTopology.
 */
export function takeByTopology(topology: CpuTopology, options: CpuOptions, available: CpuSet, count: number): CpuSet {
  const sorting: Sorting = options.distributeAcrossCores ? 'spread' : 'packed';
  if (!options.distributeAcrossNuma) {
    return takePacked(topology, available, count, sorting, options.preferAlignByUncore);
  }
  const groupSize = options.fullPcpusOnly ? topology.cpusPerCore : 1;
  return takeDistributed(topology, available, count, groupSize, sorting);
}
