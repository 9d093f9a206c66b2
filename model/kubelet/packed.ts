import { CpuSet } from '../cpu-set.ts';
import { Accumulator, type Sorting } from './accumulator.ts';
import type { CpuTopology } from './topology.ts';

/** Taking CPUs failed; the message is the kubelet's own. */
export class TakeError extends Error {}

/**
 * Takes CPUs by topology, best fit first: whole NUMA nodes and sockets, whole caches if preferred, whole cores, then
 * threads.
 * @throws TakeError if there are fewer CPUs than requested
 * Source: pkg/kubelet/cm/cpumanager/cpu_assignment.go, takeByTopologyNUMAPacked.
 */
export function takePacked(
  topology: CpuTopology,
  available: CpuSet,
  count: number,
  sorting: Sorting,
  preferUncore: boolean,
): CpuSet {
  if (count < 1) return CpuSet.EMPTY;
  const acc = new Accumulator(topology, available, count, sorting);
  assertEnough(acc, available, count);
  const steps = [
    () => acc.takeFirstLevel(),
    () => acc.takeSecondLevel(),
    () => preferUncore && acc.takeUncores(),
    () => sorting === 'packed' && acc.takeFullCores(),
    () => acc.takeRemaining(),
  ];
  for (const step of steps) {
    step();
    if (acc.isSatisfied) return acc.result;
  }
  throw new TakeError('failed to allocate cpus');
}

/**
 * Stops an allocation that needs more CPUs than are available, with the kubelet's own message.
 *
 * Source: pkg/kubelet/cm/cpumanager/cpu_assignment.go.
 *
 * @throws TakeError if the accumulator has failed
 */
export function assertEnough(acc: Accumulator, available: CpuSet, count: number): void {
  if (acc.isFailed) {
    throw new TakeError(
      `not enough cpus available to satisfy request: requested=${count}, available=${available.size}`,
    );
  }
}
