import type { ProviderHints, ResourceHints } from './hints.ts';
import {
  bestHint,
  type MemoryBlock,
  type MemoryHint,
  type MemoryState,
  memoryHints,
  releaseMemory,
  satisfies,
  splitsGroup,
  takeMemory,
} from './memory-state.ts';
import { type ContainerRequest, type PodRequest, podMemory } from './pod-request.ts';
import { type Provider, unexpected } from './provider.ts';
import { type KubeletState, withEntry } from './state.ts';
import type { Behaviour } from './versions.ts';

/** For the admission of one pod. Source: pkg/kubelet/cm/memorymanager/policy_static.go. */
export class MemoryManager implements Provider {
  readonly #pod: PodRequest;
  readonly #restored: Behaviour['restoredPodMemory'];
  #memory: MemoryState;
  readonly #blocks: Map<string, readonly MemoryBlock[]>;
  /** Bytes of init containers that later containers may reuse, by mask and kind. */
  readonly #reusable = new Map<string, number>();

  constructor(memory: MemoryState, pod: PodRequest, { restoredPodMemory }: Behaviour) {
    this.#memory = memory;
    this.#pod = pod;
    this.#restored = restoredPodMemory;
    this.#blocks = new Map(memory.blocks.get(pod.uid));
  }

  containerHints(container: ContainerRequest): ProviderHints {
    if (container.memory.size === 0) return null;
    const blocks = this.#blocks.get(container.name);
    return blocks ? regenerated(blocks, container.memory) : this.#hints(container.memory);
  }

  podHints(): ProviderHints {
    const request = podMemory(this.#pod);
    if (request.size === 0) return null;
    const ofPod = this.#restored === 'all-containers' ? this.#sharedBlocks(request) : undefined;
    if (ofPod) return regenerated(ofPod, request);
    for (const container of this.#pod.containers) {
      const blocks = this.#blocks.get(container.name);
      if (blocks) return regenerated(blocks, request);
    }
    return this.#hints(request);
  }

  /** One block for each type of the request, if every container of the pod has its memory, on the same NUMA nodes. */
  #sharedBlocks(request: ReadonlyMap<string, number>): MemoryBlock[] | undefined {
    const blocks = this.#pod.containers.flatMap(({ name }) => this.#blocks.get(name) ?? []);
    const hasAll = this.#pod.containers.every(({ name, memory }) => memory.size === 0 || this.#blocks.has(name));
    const [first] = blocks;
    if (!hasAll || first === undefined || blocks.some(({ mask }) => mask !== first.mask)) return undefined;
    return [...request].map(([type, size]) => ({ mask: first.mask, type, size }));
  }

  allocate(container: ContainerRequest, mask: number | null, preferred: boolean): void {
    if (container.memory.size === 0) return;
    let blocks = this.#blocks.get(container.name);
    if (blocks) {
      this.#updateReusable(container, blocks);
      return;
    }
    const chosen = this.#choose(container.memory, mask, preferred);
    blocks = [...container.memory].map(([type, size]) => ({ mask: chosen, type, size }));
    for (const block of blocks) {
      const size = Math.max(0, block.size - this.#reusableUnder(block.mask, block.type));
      this.#memory = { ...this.#memory, cells: takeMemory(this.#memory.cells, { ...block, size }) };
    }
    this.#updateReusable(container, blocks);
    this.#blocks.set(container.name, blocks);
    this.#shrinkInitBlocks(container, blocks);
  }

  commit(state: KubeletState): KubeletState {
    const blocks = withEntry(this.#memory.blocks, this.#pod.uid, this.#blocks);
    return { ...state, memory: { ...this.#memory, blocks } };
  }

  /** The merged mask. If it cannot provide the request, the best mask that includes it. */
  #choose(request: ReadonlyMap<string, number>, mask: number | null, preferred: boolean): number {
    const hints = () => memoryHints(this.#memory, request, this.#reusableUnder);
    let chosen: MemoryHint | undefined = mask === null ? bestHint(hints()) : { mask, preferred };
    if (!chosen) throw failed('failed to get the default NUMA affinity, no NUMA nodes with enough memory is available');
    if (!chosen.preferred && preferred) throw failed('failed to find the default preferred hint');
    const part = chosen;
    if (!satisfies(this.#memory, part.mask, request)) {
      chosen = bestHint(hints().filter((hint) => (hint.mask & part.mask) === part.mask));
      if (!chosen) throw failed('failed to find NUMA nodes to extend the current topology hint');
      if (!chosen.preferred && part.preferred) throw failed('failed to find the extended preferred hint');
    }
    if (splitsGroup(this.#memory.cells, chosen.mask)) throw failed('preferred hint violates NUMA node allocation');
    return chosen.mask;
  }

  /** Hints by resource. A resource without hints is left out, which the topology manager reads as "no preference". */
  #hints(request: ReadonlyMap<string, number>): ProviderHints {
    const hints = memoryHints(this.#memory, request, this.#reusableUnder);
    if (hints.length === 0) return null;
    return new Map([...request.keys()].map((type) => [type, hints]));
  }

  readonly #reusableUnder = (mask: number, type: string): number => this.#reusable.get(`${mask} ${type}`) ?? 0;

  #updateReusable(container: ContainerRequest, blocks: readonly MemoryBlock[]): void {
    for (const { mask, type, size } of blocks) {
      const before = this.#reusableUnder(mask, type);
      const after = container.kind === 'init' ? Math.max(before, size) : Math.max(0, before - size);
      this.#reusable.set(`${mask} ${type}`, after);
    }
  }

  /** By the bytes that a container reuses, so that each byte is released only once. */
  #shrinkInitBlocks(container: ContainerRequest, blocks: readonly MemoryBlock[]): void {
    for (const block of blocks) {
      let open = block.size;
      for (const init of this.#pod.containers) {
        if (init.name === container.name || open === 0) break;
        const initBlocks = init.kind === 'init' ? this.#blocks.get(init.name) : undefined;
        if (!initBlocks) continue;
        const shrunk = initBlocks.map((other) => {
          if (other.type !== block.type || other.mask !== block.mask) return other;
          const moved = Math.min(open, other.size);
          open -= moved;
          return { ...other, size: other.size - moved };
        });
        this.#blocks.set(init.name, shrunk);
      }
    }
  }
}

export function withoutMemory(memory: MemoryState, uid: string): MemoryState {
  let cells = memory.cells;
  for (const block of [...(memory.blocks.get(uid)?.values() ?? [])].flat()) cells = releaseMemory(cells, block);
  return { cells, blocks: withEntry(memory.blocks, uid, new Map()) };
}

/** Hints for a container that already has its memory; none if its blocks differ from its request. */
function regenerated(blocks: readonly MemoryBlock[], request: ReadonlyMap<string, number>): ProviderHints {
  if (blocks.length !== request.size || blocks.some(({ type, size }) => request.get(type) !== size)) return null;
  return new Map(blocks.map(({ type, mask }): [string, ResourceHints] => [type, [{ mask, preferred: true }]]));
}

function failed(what: string) {
  return unexpected(`[memorymanager] ${what}`);
}
