/**
 * The static memory manager in the most direct way: it tries every set of NUMA nodes, computes each sum again and
 * changes allocations in place. It uses nothing of model/, so it is an oracle.
 */

/** Bytes by kind: `memory`, `hugepages-2Mi`. */
export type Amounts = Readonly<Record<string, number>>;

export interface NaiveNode {
  readonly id: number;
  /** What remains for pods after the system's share. */
  readonly allocatable: Amounts;
  readonly given: Record<string, number>;
  /** How many blocks touch the node. */
  blocks: number;
  /** The nodes of the block that was last put on it; only itself if no block touches it. */
  group: readonly number[];
}

/** Bytes of one kind that a container holds on any of these nodes. */
export interface NaiveBlock {
  readonly nodes: readonly number[];
  readonly kind: string;
  size: number;
}

export interface NaiveHint {
  readonly nodes: ReadonlySet<number> | null;
  readonly preferred: boolean;
}

/** Memory of init containers that the rest of the pod may reuse. */
export type Reusable = NaiveBlock[];

export function naiveNode(id: number, memory: number, hugePages: Amounts, reserved: Amounts): NaiveNode {
  const pages = Object.values(hugePages).reduce((sum, bytes) => sum + bytes, 0);
  const sizes: Record<string, number> = { ...hugePages, memory: memory - pages };
  const allocatable = Object.fromEntries(
    Object.entries(sizes).map(([kind, bytes]) => [kind, bytes - (reserved[kind] ?? 0)]),
  );
  return { id, allocatable, given: {}, blocks: 0, group: [id] };
}

/**
 * Each set of nodes that could hold the request. The smallest sets that could hold it on an empty host are preferred. A
 * node is used by containers that fit on it alone, or by one group of nodes, never by both.
 */
export function naiveMemoryHints(nodes: readonly NaiveNode[], request: Amounts, reusable: Reusable): NaiveHint[] {
  const large = subsets(nodes).filter((set) => holds(set, request, allocatableOf));
  const narrowest = Math.min(...large.map((set) => set.length));
  const free = large.filter((set) => {
    if (set.length === 1 ? set[0]?.group.length !== 1 : breaksGroup(set)) return false;
    const reused = (kind: string) => bytesOf(reusable, set, kind);
    return Object.entries(request).every(([kind, bytes]) => total(set, kind, freeOf) + reused(kind) >= bytes);
  });
  return free.map((set) => ({ nodes: new Set(idsOf(set)), preferred: set.length === narrowest }));
}

/** A container that already holds its memory stays there; one with a changed request gives no hint. */
export function naiveHintsOfHeld(held: readonly NaiveBlock[], request: Amounts): NaiveHint[] | null {
  const same = held.length === Object.keys(request).length && held.every(({ kind, size }) => request[kind] === size);
  return same ? held.map(({ nodes }) => ({ nodes: new Set(nodes), preferred: true })) : null;
}

/** The nodes that a container's memory comes from, or the error. @param merged the result of the topology manager */
export function naiveChoice(
  nodes: readonly NaiveNode[],
  request: Amounts,
  reusable: Reusable,
  merged: NaiveHint,
): readonly NaiveNode[] | string {
  let { nodes: ids, preferred } = merged;
  if (ids === null) {
    const found = best(naiveMemoryHints(nodes, request, reusable));
    if (!found) return 'failed to get the default NUMA affinity, no NUMA nodes with enough memory is available';
    if (preferred && !found.preferred) return 'failed to find the default preferred hint';
    ({ nodes: ids, preferred } = found);
  }
  let chosen = nodes.filter(({ id }) => ids?.has(id));
  if (!holds(chosen, request, freeOf)) {
    const wider = naiveMemoryHints(nodes, request, reusable).filter((hint) =>
      chosen.every(({ id }) => hint.nodes?.has(id)),
    );
    const found = best(wider);
    if (!found) return 'failed to find NUMA nodes to extend the current topology hint';
    if (preferred && !found.preferred) return 'failed to find the extended preferred hint';
    chosen = nodes.filter(({ id }) => found.nodes?.has(id));
  }
  return chosen.length > 1 && breaksGroup(chosen) ? 'preferred hint violates NUMA node allocation' : chosen;
}

/** Takes a container's memory from the chosen nodes: first what init containers pass on, then from the lowest node. */
export function naiveTake(chosen: readonly NaiveNode[], request: Amounts, reusable: Reusable): NaiveBlock[] {
  return Object.entries(request).map(([kind, size]) => {
    let missing = Math.max(0, size - bytesOf(reusable, chosen, kind));
    for (const node of chosen) {
      node.blocks += 1;
      node.group = idsOf(chosen);
      const taken = Math.min(missing, freeOf(node, kind));
      node.given[kind] = (node.given[kind] ?? 0) + taken;
      missing -= taken;
    }
    return { nodes: idsOf(chosen), kind, size };
  });
}

/** Init containers run in sequence and pass on the largest block of each; the others use that up. */
export function naiveHandOn(reusable: Reusable, held: readonly NaiveBlock[], init: boolean): void {
  for (const { nodes, kind, size } of held) {
    let entry = reusable.find((one) => one.kind === kind && same(one.nodes, nodes));
    if (!entry) {
      entry = { nodes, kind, size: 0 };
      reusable.push(entry);
    }
    entry.size = init ? Math.max(entry.size, size) : Math.max(0, entry.size - size);
  }
}

/** Memory that a container took over is removed from the init containers, earliest first. */
export function naiveTakeOver(inits: readonly (readonly NaiveBlock[])[], held: readonly NaiveBlock[]): void {
  for (const { nodes, kind, size } of held) {
    let open = size;
    for (const block of inits.flat()) {
      if (block.kind !== kind || !same(block.nodes, nodes)) continue;
      const moved = Math.min(open, block.size);
      block.size -= moved;
      open -= moved;
    }
  }
}

/** Frees a block: each node returns no more of the kind than is allocated there. */
export function naiveGiveBack(nodes: readonly NaiveNode[], block: NaiveBlock): void {
  let open = block.size;
  for (const node of nodes.filter(({ id }) => block.nodes.includes(id))) {
    node.blocks -= 1;
    if (node.blocks === 0) node.group = [node.id];
    const returned = Math.min(open, node.given[block.kind] ?? 0);
    node.given[block.kind] = (node.given[block.kind] ?? 0) - returned;
    open -= returned;
  }
}

export function freeOf(node: NaiveNode, kind: string): number {
  return allocatableOf(node, kind) - (node.given[kind] ?? 0);
}

function allocatableOf(node: NaiveNode, kind: string): number {
  return node.allocatable[kind] ?? 0;
}

/** Some node of the set is already used by another set. */
function breaksGroup(set: readonly NaiveNode[]): boolean {
  return set.some((node) => node.blocks > 0 && !same(node.group, idsOf(set)));
}

/** Preferred first, then the fewest nodes, then the lowest ones. */
function best(hints: readonly NaiveHint[]): NaiveHint | undefined {
  const rank = ({ nodes, preferred }: NaiveHint) => {
    const ids = [...(nodes ?? [])];
    return [preferred ? 0 : 1, ids.length, ids.reduce((sum, id) => sum + 2 ** id, 0)] as const;
  };
  return [...hints].sort((a, b) => {
    const [one, other] = [rank(a), rank(b)];
    return one[0] - other[0] || one[1] - other[1] || one[2] - other[2];
  })[0];
}

type Measure = (node: NaiveNode, kind: string) => number;

function holds(set: readonly NaiveNode[], request: Amounts, measure: Measure): boolean {
  return Object.entries(request).every(([kind, bytes]) => total(set, kind, measure) >= bytes);
}

function total(set: readonly NaiveNode[], kind: string, measure: Measure): number {
  return set.reduce((sum, node) => sum + measure(node, kind), 0);
}

function bytesOf(reusable: Reusable, set: readonly NaiveNode[], kind: string): number {
  return reusable.find((one) => one.kind === kind && same(one.nodes, idsOf(set)))?.size ?? 0;
}

function idsOf(set: readonly NaiveNode[]): number[] {
  return set.map(({ id }) => id);
}

function same(nodes: readonly number[], others: readonly number[]): boolean {
  return nodes.length === others.length && nodes.every((id) => others.includes(id));
}

function subsets<T>(items: readonly T[]): T[][] {
  const sets: T[][] = [];
  for (let bits = 1; bits < 2 ** items.length; bits++) sets.push(items.filter((_, i) => (bits & (1 << i)) !== 0));
  return sets;
}
