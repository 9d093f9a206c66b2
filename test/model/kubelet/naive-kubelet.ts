import {
  type Amounts,
  type NaiveBlock,
  type NaiveNode,
  naiveChoice,
  naiveGiveBack,
  naiveHandOn,
  naiveHintsOfHeld,
  naiveMemoryHints,
  naiveTake,
  naiveTakeOver,
  type Reusable,
} from './naive-memory.ts';
import { allocate, hintsOf, mergePlain, type PlainHint, type PlainHost } from './set-based.ts';

export interface NaiveContainer {
  readonly name: string;
  readonly kind: 'init' | 'sidecar' | 'app';
  readonly cpus: number;
  /** Empty unless the pod is Guaranteed. */
  readonly memory: Amounts;
  /** The NUMA nodes of its NIC; none: it has no NIC. */
  readonly nic: readonly number[];
}

export interface NaivePod {
  readonly uid: string;
  /** Init containers first. */
  readonly containers: readonly NaiveContainer[];
}

/** What the containers got, or the kubelet's reason; if the memory manager refused, with its text. */
export type NaiveVerdict =
  | readonly { readonly cpus: readonly number[]; readonly nodes: readonly number[] | null }[]
  | string;

/** What one container may take over from earlier ones. */
interface Handed {
  cpus: Set<number>;
  readonly memory: Reusable;
}

/**
 * A kubelet that combines the oracles for CPUs and memory and changes its state in place. Without memory nodes, its
 * memory manager has the policy None.
 */
export class NaiveKubelet {
  readonly #host: PlainHost;
  readonly #scope: 'container' | 'pod';
  readonly pool: Set<number>;
  readonly nodes: readonly NaiveNode[] | undefined;
  readonly cpus = new Map<string, Map<string, Set<number>>>();
  readonly blocks = new Map<string, Map<string, NaiveBlock[]>>();

  constructor(host: PlainHost, scope: 'container' | 'pod', nodes: readonly NaiveNode[] | undefined) {
    this.#host = host;
    // Policy none has no scope.
    this.#scope = host.policy === 'none' ? 'container' : scope;
    this.pool = new Set(host.cpus.keys());
    this.nodes = nodes;
  }

  admit(pod: NaivePod): NaiveVerdict {
    const cpus = this.cpus.get(pod.uid) ?? new Map<string, Set<number>>();
    const blocks = this.blocks.get(pod.uid) ?? new Map<string, NaiveBlock[]>();
    this.cpus.set(pod.uid, cpus);
    this.blocks.set(pod.uid, blocks);
    const handed: Handed = { cpus: new Set(), memory: [] };
    const forPod = this.#scope === 'pod' ? mergePlain(this.#host, this.#podHints(pod, cpus, blocks)) : undefined;
    const given: { cpus: number[]; nodes: number[] | null }[] = [];
    for (const container of pod.containers) {
      const merged = forPod ?? mergePlain(this.#host, this.#containerHints(container, cpus, blocks, handed));
      const refused = merged.admit
        ? (this.#giveCpus(container, cpus, handed, merged.nodes) ??
          this.#giveMemory(pod, container, blocks, handed, merged))
        : 'TopologyAffinityError';
      if (refused !== undefined) {
        this.remove(pod.uid);
        return refused;
      }
      const nodes = merged.nodes && [...merged.nodes].sort((a, b) => a - b);
      given.push({ cpus: [...(cpus.get(container.name) ?? [])].sort((a, b) => a - b), nodes });
    }
    return given;
  }

  remove(uid: string): void {
    for (const cpus of this.cpus.get(uid)?.values() ?? []) for (const id of cpus) this.pool.add(id);
    for (const block of [...(this.blocks.get(uid)?.values() ?? [])].flat()) naiveGiveBack(this.nodes ?? [], block);
    this.cpus.delete(uid);
    this.blocks.delete(uid);
  }

  #containerHints(
    { name, cpus, memory, nic }: NaiveContainer,
    held: ReadonlyMap<string, ReadonlySet<number>>,
    blocks: ReadonlyMap<string, readonly NaiveBlock[]>,
    handed: Handed,
  ): PlainHint[][] {
    const own = held.get(name);
    const own2 = own ? { pool: own, reusable: new Set<number>() } : { pool: this.pool, reusable: handed.cpus };
    return [
      ...hintsOf(this.#host, own2.pool, own2.reusable, asPlain(cpus, nic)),
      ...this.#memoryHints(memory, blocks.get(name), handed.memory),
    ];
  }

  #podHints(
    { containers }: NaivePod,
    held: ReadonlyMap<string, ReadonlySet<number>>,
    blocks: ReadonlyMap<string, readonly NaiveBlock[]>,
  ): PlainHint[][] {
    const cpus = peak(containers, (container) => container.cpus);
    const own = new Set([...held.values()].flatMap((ids) => [...ids]));
    const kept = own.size === cpus;
    const kinds = containers.flatMap(({ kind, memory }) => (kind === 'app' ? Object.keys(memory) : []));
    const memory = Object.fromEntries(kinds.map((kind) => [kind, peak(containers, (one) => one.memory[kind] ?? 0)]));
    const nics = new Map(containers.filter(({ nic }) => nic.length > 0).map(({ nic }) => [`${nic}`, nic]));
    return [
      ...[...nics.values()].flatMap((nic) => hintsOf(this.#host, this.pool, new Set(), asPlain(0, nic)).slice(0, 1)),
      ...hintsOf(this.#host, kept ? own : this.pool, kept ? new Set() : own, asPlain(cpus, [])),
      ...this.#memoryHints(memory, [...blocks.values()][0], []),
    ];
  }

  /** One list for each kind of memory; no list if the memory manager gives no hint. */
  #memoryHints(request: Amounts, held: readonly NaiveBlock[] | undefined, reusable: Reusable): PlainHint[][] {
    if (!this.nodes) return [];
    if (held) return (naiveHintsOfHeld(held, request) ?? []).map((hint) => [hint]);
    const hints = naiveMemoryHints(this.nodes, request, reusable);
    return hints.length === 0 ? [] : Object.keys(request).map(() => hints);
  }

  #giveCpus(
    { name, kind, cpus }: NaiveContainer,
    held: Map<string, Set<number>>,
    handed: Handed,
    nodes: ReadonlySet<number> | null,
  ): string | undefined {
    if (cpus === 0) return undefined;
    const before = held.get(name);
    // Called for a container that already has its CPUs.
    const taken = allocate(this.#host, this.pool, before ? new Set(this.#host.cpus.keys()) : handed.cpus, cpus, nodes);
    if (typeof taken === 'string') return taken;
    const own = before ?? taken;
    held.set(name, own);
    for (const id of own) this.pool.delete(id);
    if (kind === 'init') handed.cpus = new Set([...handed.cpus, ...own]);
    else handed.cpus = new Set([...handed.cpus].filter((id) => !own.has(id)));
    return undefined;
  }

  #giveMemory(
    { containers }: NaivePod,
    { name, kind, memory }: NaiveContainer,
    blocks: Map<string, NaiveBlock[]>,
    handed: Handed,
    merged: PlainHint,
  ): string | undefined {
    if (!this.nodes || Object.keys(memory).length === 0) return undefined;
    const before = blocks.get(name);
    if (before) {
      naiveHandOn(handed.memory, before, kind === 'init');
      return undefined;
    }
    const chosen = naiveChoice(this.nodes, memory, handed.memory, merged);
    if (typeof chosen === 'string') return `UnexpectedAdmissionError: [memorymanager] ${chosen}`;
    const own = naiveTake(chosen, memory, handed.memory);
    naiveHandOn(handed.memory, own, kind === 'init');
    const earlier = containers.slice(
      0,
      containers.findIndex((one) => one.name === name),
    );
    const inits = earlier.filter((one) => one.kind === 'init').map((one) => blocks.get(one.name) ?? []);
    naiveTakeOver(inits, own);
    blocks.set(name, own);
    return undefined;
  }
}

function asPlain(cpus: number, nic: readonly number[]) {
  return { cpus, init: false, devices: nic.length > 0 ? [nic] : [] };
}

/** The peak at run time: each init container with the sidecars started before it, then all others. */
function peak(containers: readonly NaiveContainer[], amount: (container: NaiveContainer) => number): number {
  const times = containers.map((container, index) => {
    if (container.kind !== 'init') return containers.filter(({ kind }) => kind !== 'init');
    return [...containers.slice(0, index).filter(({ kind }) => kind === 'sidecar'), container];
  });
  return Math.max(0, ...times.map((running) => running.reduce((sum, container) => sum + amount(container), 0)));
}
