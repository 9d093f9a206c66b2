import { CpuSet, unionOf } from '../cpu-set.ts';
import { Accumulator, type Sorting } from './accumulator.ts';
import { bitCount } from './hints.ts';
import type { CpuOptions } from './options.ts';
import { HANG_TEXT, misalignedText, noPhysicalCpusText, Rejection, unexpected } from './provider.ts';
import { type CpuAssignments, cpusOf } from './state.ts';
import { HangError, TakeError, takeDistributed, takePacked } from './take.ts';
import { type CpuTopology, cpusOfNodes, withSiblings } from './topology.ts';
import { type Behaviour, OLDEST_BEHAVIOUR } from './versions.ts';

/** Does not change while the kubelet runs. */
export interface StaticPolicy {
  readonly topology: CpuTopology;
  readonly options: CpuOptions;
  readonly reserved: CpuSet;
  /** The reserved CPUs and their siblings. */
  readonly reservedCores: CpuSet;
  readonly behaviour: Behaviour;
}

export function createStaticPolicy(
  topology: CpuTopology,
  options: CpuOptions,
  reserved: CpuSet,
  behaviour = OLDEST_BEHAVIOUR,
): StaticPolicy {
  return Object.freeze({ topology, options, reserved, reservedCores: withSiblings(topology, reserved), behaviour });
}

/** The shared pool of a kubelet without assignments. */
export function initialPool({ topology, options, reserved }: StaticPolicy): CpuSet {
  return options.strictReservation ? topology.cpus.minus(reserved) : topology.cpus;
}

export function availableCpus(policy: StaticPolicy, pool: CpuSet): CpuSet {
  return pool.minus(policy.reserved);
}

/**
 * CPUs that the pod could reuse do not count as available: init containers' cores are needed twice (kubernetes
 * #112228).
 * @throws Rejection. Source: pkg/kubelet/cm/cpumanager/policy_static.go, enforceSMTAlignment.
 */
export function enforceWholeCores(policy: StaticPolicy, pool: CpuSet, count: number): void {
  if (!policy.options.fullPcpusOnly) return;
  const { cpusPerCore } = policy.topology;
  if (count % cpusPerCore !== 0) throw new Rejection('SMTAlignmentError', misalignedText(count, cpusPerCore));
  const available = pool.minus(policy.reservedCores).size;
  if (count <= available) return;
  throw new Rejection('SMTAlignmentError', noPhysicalCpusText(available, count, cpusPerCore));
}

/** First under the NUMA mask (null: any), then any CPUs. @throws Rejection. Source: policy_static.go, allocateCPUs. */
export function allocateCpus(
  policy: StaticPolicy,
  pool: CpuSet,
  count: number,
  mask: number | null,
  reusable: CpuSet = CpuSet.EMPTY,
): CpuSet {
  const { topology, options, behaviour } = policy;
  const allocatable = availableCpus(policy, pool).union(reusable);
  try {
    let aligned = CpuSet.EMPTY;
    if (mask !== null) {
      const local = allocatable.intersect(cpusUnder(topology, options, mask));
      const version = { behaviour, hinted: bitCount(mask) };
      aligned = takeByTopology(topology, options, local, Math.min(local.size, count), version);
    }
    const rest = allocatable.minus(aligned);
    return aligned.union(takeByTopology(topology, options, rest, count - aligned.size, { behaviour }));
  } catch (error) {
    if (error instanceof TakeError) throw unexpected(error.message);
    if (error instanceof HangError) throw new Rejection('KubeletHangs', HANG_TEXT);
    throw error;
  }
}

/** The CPUs of the NUMA nodes of a mask; with align-by-socket, the CPUs of the sockets that these nodes are part of. */
function cpusUnder(topology: CpuTopology, { alignBySocket }: CpuOptions, mask: number): CpuSet {
  const cpus = cpusOfNodes(topology, mask);
  if (!alignBySocket) return cpus;
  return unionOf([...topology.sockets.groups.values()].filter((socket) => socket.intersects(cpus)));
}

/** CPUs that another container of the pod has do not return. Source: policy_static.go, RemoveContainer. */
export function releaseCpus(pool: CpuSet, released: CpuSet, siblings: Iterable<CpuSet>): CpuSet {
  return pool.union(released.minus(unionOf(siblings)));
}

/**
 * @param version the kubelet's behaviour, and the number of NUMA nodes in the hint @throws TakeError, HangError
 * Source: pkg/kubelet/cm/cpumanager/policy_static.go, takeByTopology.
 */
export function takeByTopology(
  topology: CpuTopology,
  options: CpuOptions,
  available: CpuSet,
  count: number,
  { behaviour = OLDEST_BEHAVIOUR, hinted = 0 }: { behaviour?: Behaviour; hinted?: number } = {},
): CpuSet {
  const sorting = sortingOf(options, behaviour);
  if (!options.distributeAcrossNuma) {
    const stays = options.alignBySocket && options.distributeAcrossCores && behaviour.spreadSockets === 'one-with-room';
    const usable = stays ? socketWithRoom(topology, available, count) : available;
    return takePacked(topology, usable, count, sorting, options.preferAlignByUncore);
  }
  const groupSize = options.fullPcpusOnly ? topology.cpusPerCore : 1;
  const minCells = behaviour.hintedNodes === 'minimum' ? hinted : 0;
  const prefersSocket = options.alignBySocket && behaviour.distributionSockets === 'one-preferred';
  const distribution = { remainder: behaviour.remainder, minCells, prefersSocket };
  return takeDistributed(topology, available, count, groupSize, sorting, distribution);
}

function sortingOf({ distributeAcrossCores }: CpuOptions, behaviour: Behaviour): Sorting {
  if (!distributeAcrossCores) return 'packed';
  return behaviour.spread === 'by-core' ? 'spread-by-core' : 'spread';
}

/** The available CPUs of the first socket that has enough; all if none has. */
function socketWithRoom(topology: CpuTopology, available: CpuSet, count: number): CpuSet {
  const accumulator = new Accumulator(topology, available, count, 'packed');
  const sockets = accumulator.sorted(topology.sockets).map((socket) => accumulator.freeIn(topology.sockets, socket));
  return sockets.find(({ size }) => size >= count) ?? available;
}

/**
 * The shared pool with which a starting kubelet continues, or the error with which it refuses to start: after a torn
 * checkpoint, or if a CPU went offline. Source: policy_static.go, validateState.
 */
export function checkState(
  policy: StaticPolicy,
  defaultSet: CpuSet,
  assignments: CpuAssignments,
): { readonly defaultSet: CpuSet } | { readonly error: string } {
  const { topology, options, reserved } = policy;
  if (defaultSet.isEmpty) {
    return assignments.size > 0 ? { error: 'default cpuset cannot be empty' } : { defaultSet: initialPool(policy) };
  }
  const shared = reserved.intersect(defaultSet);
  if (options.strictReservation && !shared.isEmpty) {
    return { error: `some of strictly reserved cpus: "${shared}" are present in defaultCpuSet: "${defaultSet}"` };
  }
  if (!options.strictReservation && !shared.equals(reserved)) {
    return { error: `not all reserved cpus: "${reserved}" are present in defaultCpuSet: "${defaultSet}"` };
  }
  for (const [pod, containers] of assignments) {
    for (const [container, cpus] of containers) {
      if (!cpus.intersects(defaultSet)) continue;
      const where = `pod: ${pod}, container: ${container}`;
      return { error: `${where} cpuset: "${cpus}" overlaps with default cpuset "${defaultSet}"` };
    }
  }
  const cpusInState = defaultSet.union(cpusOf(assignments));
  if (cpusInState.equals(topology.cpus)) return { defaultSet };
  return {
    error: `current set of available CPUs "${topology.cpus}" doesn't match with CPUs in state "${cpusInState}"`,
  };
}
