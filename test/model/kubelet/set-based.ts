/**
 * The reference: the kubelet's admission in the most straightforward form, with Set and Map. It computes every group
 * again for each use and merges hints by iterating over every combination. It uses no code of model/, so it is an
 * oracle too: both must return the same results.
 *
 * It supports container scope, the packed accumulator with its uncore step, full-pcpus-only, and device hints.
 */

export interface PlainCpu {
  readonly id: number;
  readonly core: number;
  readonly socket: number;
  readonly cell: number;
  readonly uncore: number;
}

export interface PlainHost {
  readonly cpus: ReadonlyMap<number, PlainCpu>;
  readonly reserved: ReadonlySet<number>;
  /** NUMA nodes without CPUs. */
  readonly bareNodes?: readonly number[];
  readonly fullPcpusOnly: boolean;
  readonly preferUncore: boolean;
  readonly policy: 'none' | 'best-effort' | 'restricted' | 'single-numa-node';
  /** 1.36 creates device hints only for nodes that have devices, earlier versions for all nodes. */
  readonly wideDeviceHints: boolean;
}

export interface PlainContainer {
  readonly cpus: number;
  readonly init: boolean;
  /** NUMA nodes of each requested device resource, whose devices are all equal. */
  readonly devices: readonly (readonly number[])[];
}

export type PlainVerdict = { readonly cpus: readonly (readonly number[])[]; readonly pool: Set<number> } | string;

export interface PlainHint {
  readonly nodes: ReadonlySet<number> | null;
  readonly preferred: boolean;
}

/**
 * Admits a pod from a shared pool. Returns the CPUs of each container and the remaining pool, or the kubelet's reason.
 */
export function admitPlain(
  host: PlainHost,
  pool: ReadonlySet<number>,
  containers: readonly PlainContainer[],
): PlainVerdict {
  let left = new Set(pool);
  let reusable = new Set<number>();
  const given: number[][] = [];
  for (const container of containers) {
    const merged = mergePlain(host, hintsOf(host, left, reusable, container));
    if (!merged.admit) return 'TopologyAffinityError';
    const taken = allocate(host, left, reusable, container.cpus, merged.nodes);
    if (typeof taken === 'string') return taken;
    left = difference(left, taken);
    reusable = container.init ? union(reusable, taken) : difference(reusable, taken);
    given.push([...taken].sort((a, b) => a - b));
  }
  return { cpus: given, pool: left };
}

/**
 * The hints of each device resource, then of the CPUs. With fewer CPUs than the container needs, the result is one hint
 * without nodes.
 */
export function hintsOf(
  host: PlainHost,
  pool: ReadonlySet<number>,
  reusable: ReadonlySet<number>,
  { cpus, devices }: PlainContainer,
): PlainHint[][] {
  const all = cellsOf(host);
  const lists: PlainHint[][] = devices.map((nodes) => {
    const considered = host.wideDeviceHints
      ? [...all, ...(host.bareNodes ?? [])]
      : all.filter((cell) => nodes.includes(cell));
    const near = subsets(considered).filter((subset) => nodes.some((node) => subset.has(node)));
    const narrowest = Math.min(considered.length, ...near.map((subset) => subset.size));
    return near.map((subset) => ({ nodes: subset, preferred: subset.size === narrowest }));
  });
  if (cpus === 0) return [...lists, [{ nodes: null, preferred: true }]];
  let narrowest = all.length;
  const fitting: Set<number>[] = [];
  for (const subset of subsets(all)) {
    const inside = [...host.cpus.values()].filter(({ cell }) => subset.has(cell));
    if (inside.length >= cpus) narrowest = Math.min(narrowest, subset.size);
    const reused = inside.filter(({ id }) => reusable.has(id));
    if (reused.length < reusable.size) continue;
    const free = inside.filter(({ id }) => pool.has(id) && !host.reserved.has(id));
    if (free.length + reused.length >= cpus) fitting.push(subset);
  }
  const hints = fitting.map((subset) => ({ nodes: subset, preferred: subset.size === narrowest }));
  return [...lists, hints.length > 0 ? hints : [{ nodes: null, preferred: false }]];
}

/** Iterates over every combination of one hint of each list. */
export function mergePlain(
  host: PlainHost,
  given: readonly (readonly PlainHint[])[],
): { readonly nodes: ReadonlySet<number> | null; readonly preferred: boolean; readonly admit: boolean } {
  if (host.policy === 'none') return { nodes: null, preferred: false, admit: true };
  const all = new Set([...cellsOf(host), ...(host.bareNodes ?? [])]);
  const lists =
    host.policy === 'single-numa-node'
      ? given.map((list) => list.filter(({ nodes, preferred }) => preferred && (nodes === null || nodes.size === 1)))
      : given;
  const widths = lists.map((list) => Math.min(...list.map(({ nodes }) => nodes?.size ?? Number.POSITIVE_INFINITY)));
  const widest = Math.max(0, ...widths.filter((width) => Number.isFinite(width)));
  let best: { nodes: Set<number>; preferred: boolean } | undefined;
  const walk = (index: number, chosen: readonly PlainHint[]): void => {
    const list = lists[index];
    if (list) {
      for (const hint of list) walk(index + 1, [...chosen, hint]);
      return;
    }
    const affinities = chosen.flatMap(({ nodes }) => (nodes ? [nodes] : []));
    const same = affinities.every((nodes) => equal(nodes, affinities[0] ?? nodes));
    const nodes = affinities.reduce((rest: Set<number>, one) => intersection(rest, one), all);
    const candidate = { nodes, preferred: same && chosen.every(({ preferred }) => preferred) };
    if (nodes.size > 0 && (!best || wins(candidate, best, widest))) best = candidate;
  };
  walk(0, []);
  const found = best ?? { nodes: all, preferred: false };
  const anywhere = host.policy === 'single-numa-node' && equal(found.nodes, all);
  const admit = host.policy === 'best-effort' || found.preferred;
  return { nodes: anywhere ? null : found.nodes, preferred: found.preferred, admit };
}

function wins(
  candidate: { nodes: Set<number>; preferred: boolean },
  current: { nodes: Set<number>; preferred: boolean },
  widest: number,
): boolean {
  if (candidate.preferred !== current.preferred) return candidate.preferred;
  const narrower = isNarrower(candidate.nodes, current.nodes);
  if (candidate.preferred) return narrower;
  if (current.nodes.size > widest) return narrower;
  if (current.nodes.size === widest) return candidate.nodes.size === widest && narrower;
  if (candidate.nodes.size > widest) return false;
  if (candidate.nodes.size === widest) return true;
  return candidate.nodes.size > current.nodes.size || (candidate.nodes.size === current.nodes.size && narrower);
}

function isNarrower(nodes: ReadonlySet<number>, other: ReadonlySet<number>): boolean {
  if (nodes.size !== other.size) return nodes.size < other.size;
  const value = (set: ReadonlySet<number>) => [...set].reduce((sum, node) => sum + 2 ** node, 0);
  return value(nodes) < value(other);
}

/** The CPUs of a container, or why it gets none. */
export function allocate(
  host: PlainHost,
  pool: ReadonlySet<number>,
  reusable: ReadonlySet<number>,
  count: number,
  nodes: ReadonlySet<number> | null,
): Set<number> | string {
  if (count === 0) return new Set();
  const perCore = Math.floor(host.cpus.size / groupIds(host, new Set(host.cpus.keys()), 'core').length);
  if (host.fullPcpusOnly) {
    if (count % perCore !== 0) return 'SMTAlignmentError';
    const touched = new Set([...host.reserved].map((id) => host.cpus.get(id)?.core));
    const physical = [...pool].filter((id) => !touched.has(host.cpus.get(id)?.core));
    if (count > physical.length) return 'SMTAlignmentError';
  }
  const allocatable = union(difference(pool, host.reserved), reusable);
  let taken = new Set<number>();
  if (nodes) {
    const local = new Set([...allocatable].filter((id) => nodes.has(host.cpus.get(id)?.cell ?? -1)));
    taken = takePlain(host, local, Math.min(local.size, count), perCore) ?? taken;
  }
  const rest = takePlain(host, difference(allocatable, taken), count - taken.size, perCore);
  return rest ? union(taken, rest) : 'UnexpectedAdmissionError';
}

type Key = 'core' | 'socket' | 'cell' | 'uncore';

function takePlain(host: PlainHost, available: Set<number>, count: number, perCore: number): Set<number> | undefined {
  const free = new Set(available);
  const taken = new Set<number>();
  let needed = count;
  if (needed < 1) return taken;
  if (needed > free.size) return undefined;
  const take = (ids: Iterable<number>) => {
    for (const id of ids) {
      taken.add(id);
      free.delete(id);
      needed--;
    }
  };
  const whole = (key: Key, size: (group: number) => number) => {
    const groups = ordered(host, free, key).filter((group) => members(host, free, key, group).length === size(group));
    for (const group of groups) {
      const ids = membersOf(host, key, group);
      if (needed >= ids.length) take(ids);
    }
  };
  const cells = () => whole('cell', (group) => membersOf(host, 'cell', group).length);
  const sockets = () => {
    const count2 = groupIds(host, new Set(host.cpus.keys()), 'socket').length;
    whole('socket', () => Math.floor(host.cpus.size / count2));
  };
  const steps = cellsFirst(host) ? [cells, sockets] : [sockets, cells];
  for (const step of steps) {
    step();
    if (needed < 1) return taken;
  }
  if (host.preferUncore) {
    const caches = groupIds(host, new Set(host.cpus.keys()), 'uncore').length;
    for (const uncore of ordered(host, free, 'uncore')) {
      if (needed >= Math.floor(host.cpus.size / caches)) {
        whole('uncore', (group) => membersOf(host, 'uncore', group).length);
      }
      if (needed < 1) return taken;
      const cores = groupIds(host, new Set(members(host, free, 'uncore', uncore)), 'core').slice(
        0,
        Math.floor((needed + perCore - 1) / perCore),
      );
      let ids = cores.flatMap((core) => members(host, free, 'core', core)).sort((a, b) => a - b);
      if (needed % 2 !== 0 && perCore > 1 && ids.length > needed) ids = ids.slice(0, -1);
      if (ids.length === needed) take(ids);
      if (needed < 1) return taken;
    }
  }
  whole('core', () => perCore);
  if (needed < 1) return taken;
  for (const core of ordered(host, free, 'core')) {
    for (const id of members(host, free, 'core', core).sort((a, b) => a - b)) {
      take([id]);
      if (needed < 1) return taken;
    }
  }
  return undefined;
}

function cellsFirst(host: PlainHost): boolean {
  const every = new Set(host.cpus.keys());
  return groupIds(host, every, 'socket').length >= groupIds(host, every, 'cell').length;
}

/**
 * Groups with a free CPU in the kubelet's order: the outer level sorted, and within each of its groups the inner level.
 */
function ordered(host: PlainHost, free: ReadonlySet<number>, key: Key): number[] {
  const first: Key = cellsFirst(host) ? 'cell' : 'socket';
  const second: Key = first === 'cell' ? 'socket' : 'cell';
  const sorted = (ids: number[], of: Key) =>
    ids.sort((a, b) => members(host, free, of, a).length - members(host, free, of, b).length || a - b);
  const within = (outer: number[], outerKey: Key, inner: Key) =>
    outer.flatMap((group) => sorted(groupIds(host, new Set(members(host, free, outerKey, group)), inner), inner));
  const top = sorted(groupIds(host, free, first), first);
  if (key === first) return top;
  const middle = within(top, first, second);
  if (key === second) return middle;
  return key === 'core' ? within(middle, second, 'core') : within(ordered(host, free, 'cell'), 'cell', 'uncore');
}

function groupIds(host: PlainHost, ids: ReadonlySet<number>, key: Key): number[] {
  return [...new Set([...ids].flatMap((id) => host.cpus.get(id)?.[key] ?? []))].sort((a, b) => a - b);
}

function members(host: PlainHost, free: ReadonlySet<number>, key: Key, group: number): number[] {
  return [...free].filter((id) => host.cpus.get(id)?.[key] === group);
}

function membersOf(host: PlainHost, key: Key, group: number): number[] {
  return members(host, new Set(host.cpus.keys()), key, group);
}

function cellsOf(host: PlainHost): number[] {
  return groupIds(host, new Set(host.cpus.keys()), 'cell');
}

function subsets(items: readonly number[]): Set<number>[] {
  const all: Set<number>[] = [];
  for (let bits = 1; bits < 2 ** items.length; bits++)
    all.push(new Set(items.filter((_, i) => (bits & (1 << i)) !== 0)));
  return all;
}

function union(a: ReadonlySet<number>, b: ReadonlySet<number>): Set<number> {
  return new Set([...a, ...b]);
}

function difference(a: ReadonlySet<number>, b: ReadonlySet<number>): Set<number> {
  return new Set([...a].filter((item) => !b.has(item)));
}

function intersection(a: ReadonlySet<number>, b: ReadonlySet<number>): Set<number> {
  return new Set([...a].filter((item) => b.has(item)));
}

function equal(a: ReadonlySet<number>, b: ReadonlySet<number>): boolean {
  return a.size === b.size && [...a].every((item) => b.has(item));
}
