import { CpuSet } from '../cpu-set.ts';
import { cpuHints } from './cpu-hints.ts';
import type { ProviderHints } from './hint.ts';
import { type ContainerRequest, type PodRequest, podCpus } from './pod-request.ts';
import type { Provider } from './provider.ts';
import { type KubeletState, withEntry } from './state.ts';
import { allocateCpus, availableCpus, enforceWholeCores, type StaticPolicy } from './static-policy.ts';

/**
 * The static CPU manager, for the admission of one pod.
 *
 * A container that is already in the state keeps its CPUs: the kubelet has restarted and checks its pods again. But
 * full-pcpus-only then compares the request with the CPUs that are free now, so the kubelet refuses a larger pod that
 * is running (kubernetes #129078).
 *
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
    let cpus = this.#assigned.get(container.name);
    if (!cpus) {
      cpus = allocateCpus(this.#policy, this.#pool, container.cpus, mask, this.#reusable);
      this.#pool = this.#pool.minus(cpus);
      this.#assigned.set(container.name, cpus);
    }
    // A sidecar runs alongside the containers after it: it takes reusable CPUs, and later containers cannot reuse its
    // own.
    this.#reusable = container.kind === 'init' ? this.#reusable.union(cpus) : this.#reusable.minus(cpus);
  }

  commit(state: KubeletState): KubeletState {
    const assignments = withEntry(state.assignments, this.#pod.uid, this.#assigned);
    return { ...state, defaultSet: this.#pool, assignments };
  }

  /** The exclusive CPUs of a container; empty for the shared pool. */
  assigned(container: string): CpuSet {
    return this.#assigned.get(container) ?? CpuSet.EMPTY;
  }

  #hints(available: CpuSet, reusable: CpuSet, request: number): ProviderHints {
    return new Map([['cpu', cpuHints(this.#policy.topology, this.#policy.options, available, reusable, request)]]);
  }
}
