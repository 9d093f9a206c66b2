import {
  type DeviceAllocations,
  deviceHints,
  handOutOrder,
  type IndexedPool,
  indexPool,
  isArbitrary,
} from './devices.ts';
import type { ProviderHints, ResourceHints } from './hints.ts';
import { type ContainerRequest, type PodRequest, podDevices } from './pod-request.ts';
import { type Provider, unexpected } from './provider.ts';
import { type KubeletState, withEntry } from './state.ts';
import type { CpuTopology } from './topology.ts';
import type { Behaviour } from './versions.ts';

const NONE: ReadonlySet<string> = new Set();

/** Ignores resources without a plugin. Source: pkg/kubelet/cm/devicemanager/manager.go, topology_hints.go. */
export class DeviceManager implements Provider {
  readonly #topology: CpuTopology;
  readonly #behaviour: Behaviour;
  readonly #pod: PodRequest;
  readonly #pools: ReadonlyMap<string, IndexedPool>;
  readonly #used: Map<string, Set<string>>;
  readonly #assigned: Map<string, Map<string, ReadonlySet<string>>>;
  /** Devices of init containers that later containers of the pod may reuse, by resource. */
  readonly #reusable = new Map<string, Set<string>>();
  /** Resources of which the kubelet may have allocated devices of other NUMA nodes. */
  readonly arbitrary = new Set<string>();

  constructor(topology: CpuTopology, behaviour: Behaviour, state: KubeletState, pod: PodRequest) {
    this.#topology = topology;
    this.#behaviour = behaviour;
    this.#pod = pod;
    const names = new Set(pod.containers.flatMap(({ devices }) => [...devices.keys()]));
    const pools = [...state.pools].filter(([name]) => names.has(name));
    this.#pools = new Map(pools.map(([name, pool]) => [name, indexPool(topology, pool)]));
    this.#used = usedDevices(state.devices, this.#pools);
    this.#assigned = new Map(
      [...(state.devices.get(pod.uid) ?? [])].map(([name, devices]) => [name, new Map(devices)]),
    );
  }

  containerHints(container: ContainerRequest): ProviderHints {
    return this.#hintsFor(container.devices, (name) => this.#assigned.get(container.name)?.get(name) ?? NONE, true);
  }

  podHints(): ProviderHints {
    const ofPod = (name: string) => new Set([...this.#assigned.values()].flatMap((all) => [...(all.get(name) ?? [])]));
    return this.#hintsFor(podDevices(this.#pod), ofPod, false);
  }

  allocate(container: ContainerRequest, mask: number | null): void {
    for (const [name, count] of container.devices) {
      const pool = this.#pools.get(name);
      if (pool) this.#allocate(container, name, pool, count, mask);
    }
    for (const name of container.devices.keys()) this.#updateReusable(container, name);
  }

  commit(state: KubeletState): KubeletState {
    return { ...state, devices: withEntry(state.devices, this.#pod.uid, this.#assigned) };
  }

  assigned(container: string): ReadonlyMap<string, ReadonlySet<string>> {
    return this.#assigned.get(container) ?? new Map();
  }

  #hintsFor(
    requests: ReadonlyMap<string, number>,
    allocatedTo: (name: string) => ReadonlySet<string>,
    reuses: boolean,
  ): ProviderHints {
    const hints = new Map<string, ResourceHints>();
    for (const [name, count] of requests) {
      const pool = this.#pools.get(name);
      if (!pool) continue;
      const allocated = allocatedTo(name);
      const reusable = reuses ? (this.#reusable.get(name) ?? NONE) : NONE;
      hints.set(name, this.#poolHints(name, pool, count, allocated, reusable));
    }
    return hints;
  }

  #poolHints(
    name: string,
    pool: IndexedPool,
    count: number,
    allocated: ReadonlySet<string>,
    reusable: ReadonlySet<string>,
  ): ResourceHints {
    if (!pool.aligned) return null;
    if (allocated.size > 0) {
      if (allocated.size !== count) return [];
      return deviceHints(this.#topology, this.#behaviour, pool, allocated, NONE, count);
    }
    const available = this.#available(name, pool);
    if (new Set([...available, ...reusable]).size < count) return [];
    return deviceHints(this.#topology, this.#behaviour, pool, available, reusable, count);
  }

  #available(name: string, pool: IndexedPool): ReadonlySet<string> {
    const used = pool.endless ? NONE : (this.#used.get(name) ?? NONE);
    return new Set(pool.devices.filter(({ id, healthy }) => healthy && !used.has(id)).map(({ id }) => id));
  }

  #allocate(container: ContainerRequest, name: string, pool: IndexedPool, count: number, mask: number | null): void {
    const before = this.#assigned.get(container.name)?.get(name);
    if (before && before.size !== count) {
      const change = `changed request for resource "${name}" from ${before.size} to ${count}`;
      throw unexpected(`pod "${this.#pod.uid}" container "${container.name}" ${change}`);
    }
    const healthy = new Set(pool.devices.filter((device) => device.healthy).map((device) => device.id));
    if (healthy.size === 0) throw unexpected(`no healthy devices present; cannot allocate unhealthy devices ${name}`);
    if (before && [...before].some((id) => !healthy.has(id))) {
      throw unexpected(`previously allocated devices are no longer healthy; cannot allocate unhealthy devices ${name}`);
    }
    if (before || count === 0) return;

    const devices = new Set([...(this.#reusable.get(name) ?? NONE)].slice(0, count));
    const needed = count - devices.size;
    const available = this.#available(name, pool);
    if (available.size < needed) {
      const counts = `Requested: ${needed}, Available: ${available.size}`;
      throw unexpected(`requested number of devices unavailable for ${name}. ${counts}`);
    }
    const order = handOutOrder(pool, available, mask);
    if (isArbitrary(pool, order, needed, mask)) this.arbitrary.add(name);
    for (const id of order.slice(0, needed)) devices.add(id);
    const ofContainer = this.#assigned.get(container.name) ?? new Map<string, ReadonlySet<string>>();
    this.#assigned.set(container.name, ofContainer.set(name, devices));
    const used = this.#used.get(name) ?? new Set();
    for (const id of devices) used.add(id);
    this.#used.set(name, used);
  }

  #updateReusable(container: ContainerRequest, name: string): void {
    const devices = this.#assigned.get(container.name)?.get(name);
    if (!devices) return;
    const reusable = this.#reusable.get(name) ?? new Set();
    for (const id of devices) {
      if (container.kind === 'init') reusable.add(id);
      else reusable.delete(id);
    }
    this.#reusable.set(name, reusable);
  }
}

function usedDevices(allocations: DeviceAllocations, pools: ReadonlyMap<string, IndexedPool>) {
  const used = new Map<string, Set<string>>();
  for (const [name, pool] of pools) if (!pool.endless) used.set(name, new Set());
  if (used.size === 0) return used;
  for (const containers of allocations.values()) {
    for (const resources of containers.values()) {
      for (const [name, devices] of resources) for (const id of devices) used.get(name)?.add(id);
    }
  }
  return used;
}
