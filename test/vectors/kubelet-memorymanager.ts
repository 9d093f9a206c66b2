import { CpuSet } from '../../model/cpu-set.ts';
import type { ProviderHints } from '../../model/kubelet/hints.ts';
import { MemoryManager, withoutMemory } from '../../model/kubelet/memory-manager.ts';
import { type CellMemory, initialMemory, type MemoryState, splitsGroup } from '../../model/kubelet/memory-state.ts';
import { podMemory } from '../../model/kubelet/pod-request.ts';
import { Rejection } from '../../model/kubelet/provider.ts';
import type { Behaviour } from '../../model/kubelet/versions.ts';
import {
  type FixtureHint,
  type FixturePod,
  hintsOf,
  requestOf,
  sortedEntries,
  sortedHints,
  topologyOfNodes,
  type UpstreamCase,
  type UpstreamFile,
  unwrapped,
  upstreamCases,
} from './kubelet-upstream.ts';
import { type Adapter, differs, type Verdict } from './outcome.ts';

type Sizes = readonly [total: number, systemReserved: number, allocatable: number, reserved: number, free: number];
type Block = readonly [type: string, numaNodes: readonly number[], size: number];
type Assignments = Readonly<Record<string, Readonly<Record<string, readonly Block[]>>>>;
type Hints = Readonly<Record<string, readonly FixtureHint[]>> | null;
type States = Readonly<
  Record<string, { readonly cells: readonly number[]; readonly blocks: number; readonly tables: Record<string, Sizes> }>
>;

interface MemoryCase extends UpstreamCase {
  readonly kind: 'initial' | 'allocate' | 'remove' | 'hints' | 'podHints' | 'podRequest' | 'violates';
  readonly state?: States;
  readonly assignments?: Assignments;
  readonly machine?: readonly CellMemory[];
  readonly reserved?: Readonly<Record<string, Readonly<Record<string, number>>>>;
  readonly hint?: FixtureHint;
  /** Pods that are gone: the kubelet frees their memory before it makes hints. */
  readonly gone?: readonly string[];
  readonly remove?: readonly [uid: string, container: string];
  /** The containers to allocate; absent: all. */
  readonly containers?: readonly string[];
  readonly pod?: FixturePod;
  readonly expect: {
    readonly error?: string;
    readonly state?: States;
    readonly assignments?: Assignments;
    readonly hints?: Hints;
    readonly request?: Readonly<Record<string, number>>;
    readonly violates?: boolean;
  };
}

const CHECKS: Readonly<Record<MemoryCase['kind'], (item: MemoryCase, behaviour: Behaviour) => Verdict>> = {
  initial: ({ machine = [], reserved = {}, expect }) => {
    const cells = machine.map((cell) => ({ ...cell, reserved: reserved[cell.id] }));
    const ids = cells.map(({ id }) => id);
    return differs(cellsOf(initialMemory(ids, cells)), expectedCells(expect.state ?? {}));
  },
  allocate,
  remove: ({ remove: [uid] = ['', ''], expect, ...item }) => {
    const after = withoutMemory(memoryOf(item), uid);
    return (
      differs(cellsOf(after), expectedCells(expect.state ?? {})) ?? differs(blocksOf(after), expectedBlocks(expect))
    );
  },
  hints: (item, behaviour) => {
    const request = requestOf(item.pod!);
    const memory = (item.gone ?? []).reduce(withoutMemory, memoryOf(item));
    const manager = new MemoryManager(memory, request, behaviour);
    const container = request.containers.find(({ kind }) => kind === 'app');
    return container ? differsFrom(item, manager.containerHints(container)) : 'no container';
  },
  podHints: (item, behaviour) =>
    differsFrom(item, new MemoryManager(memoryOf(item), requestOf(item.pod!), behaviour).podHints()),
  // The pods of upstream's table have no limits, and their class is not asked.
  podRequest: (item) =>
    differs(
      sortedEntries(podMemory(requestOf(item.pod!, { qosClass: 'Guaranteed' }))),
      sortedEntries(Object.entries(item.expect.request ?? {})),
    ),
  violates: (item) =>
    differs(splitsGroup(memoryOf(item).cells, maskOf(item.hint?.numaNodes ?? [])), item.expect.violates),
};

/** kubelet-memorymanager-cases.json: the kubelet's own unit tests of the memory manager. */
export const run: Adapter = (content) =>
  upstreamCases(content as UpstreamFile<MemoryCase>, (item, behaviour) => CHECKS[item.kind](item, behaviour));

function allocate(item: MemoryCase, behaviour: Behaviour): Verdict {
  const request = requestOf(item.pod!);
  const memory = memoryOf(item);
  const manager = new MemoryManager(memory, request, behaviour);
  const mask = item.hint?.numaNodes ? maskOf(item.hint.numaNodes) : null;
  try {
    for (const container of request.containers) {
      if (item.containers && !item.containers.includes(container.name)) continue;
      manager.allocate(container, mask, item.hint?.preferred ?? false);
    }
  } catch (error) {
    return error instanceof Rejection ? differs(unwrapped(error.message), item.expect.error) : `${error}`;
  }
  if (item.expect.error !== undefined) return `expected the error ${item.expect.error}`;
  const state = { defaultSet: CpuSet.EMPTY, assignments: new Map(), pools: new Map(), devices: new Map(), memory };
  const after = manager.commit(state).memory ?? memory;
  const assigned = item.expect.assignments && differs(blocksOf(after), expectedBlocks(item.expect));
  return differs(cellsOf(after), expectedCells(item.expect.state ?? {})) ?? assigned;
}

function differsFrom(item: MemoryCase, hints: ProviderHints): Verdict {
  const topology = topologyOfNodes(item.state ? Object.keys(item.state).map(Number) : [0, 1]);
  const entries = [...(hints ?? [])].map(([type, list]) => [type, hintsOf(topology, list ?? [])] as const);
  const expected = Object.entries(item.expect.hints ?? {}).map(([type, list]) => [type, sortedHints(list)] as const);
  return differs(sortedEntries(entries), sortedEntries(expected));
}

function memoryOf({ state = {}, assignments = {} }: Pick<MemoryCase, 'state' | 'assignments'>): MemoryState {
  const cells = Object.entries(state).map(([id, { cells: group, blocks, tables }]): MemoryState['cells'][number] => {
    const sizes = Object.entries(tables).map(
      ([type, [, , allocatable, , free]]) => [type, { allocatable, free }] as const,
    );
    return { blocks, group: maskOf(group.length === 0 ? [Number(id)] : group), tables: new Map(sizes) };
  });
  const blocks = Object.entries(assignments).map(([uid, containers]) => {
    const ofPod = Object.entries(containers).map(
      ([name, list]) => [name, list.map(([type, nodes, size]) => ({ mask: maskOf(nodes), type, size }))] as const,
    );
    return [uid, new Map(ofPod)] as const;
  });
  return { cells, blocks: new Map(blocks) };
}

function cellsOf({ cells }: MemoryState) {
  return cells.map(({ blocks, group, tables }) => [
    blocks,
    group,
    sortedEntries([...tables].map(([type, { allocatable, free }]) => [type, [allocatable, free]] as const)),
  ]);
}

function expectedCells(state: States) {
  return cellsOf(memoryOf({ state }));
}

/** Blocks by pod and container, in an order of their own: upstream compares them so. */
function blocksOf({ blocks }: MemoryState) {
  return sortedEntries(
    [...blocks].map(([uid, containers]) => {
      const ofPod = [...containers].map(
        ([name, list]) => [name, list.map(({ mask, type, size }) => `${type} ${mask} ${size}`).sort()] as const,
      );
      return [uid, sortedEntries(ofPod)] as const;
    }),
  );
}

function expectedBlocks({ assignments = {} }: MemoryCase['expect']) {
  return blocksOf(memoryOf({ assignments }));
}

function maskOf(nodes: readonly number[]): number {
  return nodes.reduce((mask, node) => mask | (1 << node), 0);
}
