import { CpuSet } from '../cpu-set.ts';
import { bitCount, type ProviderHints, subMasks } from './hints.ts';
import { type ContainerRequest, type PodRequest, podCpus } from './pod-request.ts';
import type { Provider } from './provider.ts';
import { type KubeletState, withEntry } from './state.ts';
import { allocateCpus, availableCpus, enforceWholeCores, type StaticPolicy } from './static-policy.ts';
import { type CpuTopology, cpusOfNodes, numaMask } from './topology.ts';

/**
 * The static CPU manager, for the admission of one pod. A container in the state keeps its CPUs: the kubelet has
 * restarted. But full-pcpus-only compares the request with the CPUs free now, and refuses a larger running pod
 * (kubernetes #129078).
 * Source: pkg/kubelet/cm/cpumanager/policy_static.go, Allocate, GetTopologyHints, GetPodTopologyHints.
 */
export class CpuManager implements Provider {
  readonly #policy: StaticPolicy;
  readonly #pod: PodRequest;
  readonly #assigned: Map<string, CpuSet>;
  #pool: CpuSet;
  /** CPUs of init containers that later containers of the pod may reuse. */
  #reusable = CpuSet.EMPTY;

  constructor(policy: StaticPolicy, state: KubeletState, pod: PodRequest) {
    this.#policy = policy;
    this.#pod = pod;
    this.#pool = state.defaultSet;
    this.#assigned = new Map(state.assignments.get(pod.uid));
  }

  containerHints(container: ContainerRequest): ProviderHints {
    if (container.cpus === 0) return null;
    const allocated = this.#assigned.get(container.name);
    if (!allocated) return this.#hints(availableCpus(this.#policy, this.#pool), this.#reusable, container.cpus);
    if (allocated.size !== container.cpus) return new Map([['cpu', []]]);
    return this.#hints(allocated, CpuSet.EMPTY, container.cpus);
  }

  podHints(): ProviderHints {
    const requested = podCpus(this.#pod);
    if (requested === 0) return null;
    let assigned = CpuSet.EMPTY;
    for (const container of this.#pod.containers) {
      const allocated = this.#assigned.get(container.name);
      if (!allocated) continue;
      if (allocated.size !== container.cpus) return new Map([['cpu', []]]);
      assigned = assigned.union(allocated);
    }
    if (assigned.size === requested) return this.#hints(assigned, CpuSet.EMPTY, requested);
    return this.#hints(availableCpus(this.#policy, this.#pool), this.#reusable.union(assigned), requested);
  }

  allocate(container: ContainerRequest, mask: number | null): void {
    if (container.cpus === 0) return;
    enforceWholeCores(this.#policy, this.#pool, container.cpus);
    const cpus =
      this.#assigned.get(container.name) ??
      allocateCpus(this.#policy, this.#pool, container.cpus, mask, this.#reusable);
    this.#pool = this.#pool.minus(cpus);
    this.#assigned.set(container.name, cpus);
    // A sidecar runs alongside the containers after it: it takes reusable CPUs, and later ones cannot reuse its own.
    this.#reusable = container.kind === 'init' ? this.#reusable.union(cpus) : this.#reusable.minus(cpus);
  }

  commit(state: KubeletState): KubeletState {
    const assignments = withEntry(state.assignments, this.#pod.uid, this.#assigned);
    return { ...state, defaultSet: this.#pool, assignments };
  }

  /** Empty for the shared pool. */
  assigned(container: string): CpuSet {
    return this.#assigned.get(container) ?? CpuSet.EMPTY;
  }

  /**
   * A set is preferred if it is as narrow as the *total* CPUs allow, including used and reserved ones: a pod may be
   * refused although enough CPUs are free. @param reusable CPUs of init containers, which every hint must include
   * Source: pkg/kubelet/cm/cpumanager/policy_static.go, generateCPUTopologyHints.
   */
  #hints(available: CpuSet, reusable: CpuSet, request: number): ProviderHints {
    const { topology, options } = this.#policy;
    const { cells, numaIds } = topology;
    const countIn = (cpus: CpuSet) => numaIds.map((id) => cells.groups.get(id)?.intersect(cpus).size ?? 0);
    const [total, free, reuse] = [countIn(topology.cpus), countIn(available), countIn(reusable)];
    const reuseMask = reuse.reduce((mask, count, bit) => (count === 0 ? mask : mask | (1 << bit)), 0);
    let narrowest = cells.groups.size;
    const masks: number[] = [];
    for (const mask of subMasks(numaMask(topology, cells.groups.keys()))) {
      const width = bitCount(mask);
      if (width < narrowest && sumOver(mask, total) >= request) narrowest = width;
      if ((reuseMask & ~mask) !== 0) continue;
      if (sumOver(mask, reuse) + sumOver(mask, free) >= request) masks.push(mask);
    }
    const isPreferred = (mask: number) =>
      bitCount(mask) === narrowest || (options.alignBySocket && isSocketAligned(topology, mask, narrowest));
    return new Map([['cpu', masks.map((mask) => ({ mask, preferred: isPreferred(mask) }))]]);
  }
}

/** Whether a mask has just as many sockets as `narrowest` cells need. */
function isSocketAligned(topology: CpuTopology, mask: number, narrowest: number): boolean {
  const cellsPerSocket = Math.floor(topology.counts.cells / topology.counts.sockets);
  if (!(cellsPerSocket > 0)) return false;
  const cpus = cpusOfNodes(topology, mask);
  const sockets = [...topology.sockets.groups.values()].filter((socket) => socket.intersects(cpus));
  return sockets.length === Math.floor((narrowest + cellsPerSocket - 1) / cellsPerSocket);
}

function sumOver(mask: number, amounts: readonly number[]): number {
  return amounts.reduce((sum, amount, bit) => ((mask & (1 << bit)) === 0 ? sum : sum + amount), 0);
}
