import { type CpuTopology, createTopology, numaNodes } from '../../model/kubelet/topology.ts';
import { type Behaviour, behaviourOf } from '../../model/kubelet/versions.ts';
import { collect, type Outcome, Skip, type Verdict } from './outcome.ts';

/** One case of the kubelet's own unit tests. */
export interface UpstreamCase {
  readonly id: string;
  readonly description?: string;
  /** Why the case does not apply to the model: a name in the file's `reasons`. */
  readonly skip?: string;
  /** The first version with the case or with its values; absent: the file's version. */
  readonly since?: string;
  /** The upstream change that brought the case or its values. */
  readonly change?: string;
  /** The last minor version with these values, where a later one has others. */
  readonly until?: string;
}

export interface UpstreamFile<T extends UpstreamCase> {
  readonly upstream: string;
  readonly reasons: Readonly<Record<string, string>>;
  readonly cases: readonly T[];
}

/** Runs every case that applies to the model, with the version it holds for. */
export function collectUpstream<T extends UpstreamCase>(
  { upstream, reasons, cases }: UpstreamFile<T>,
  check: (item: T, behaviour: Behaviour, version: string) => Verdict,
): Outcome {
  return collect(
    cases,
    ({ id, description = '' }) => `${id} (${description})`,
    (item) => {
      if (item.skip !== undefined) return new Skip(reasons[item.skip] ?? item.skip);
      const version = `v${item.since ?? upstream}`;
      const behaviour = behaviourOf(version);
      return behaviour ? check(item, behaviour, version) : new Skip(`a kubelet ${version} is not predicted`);
    },
  );
}

/** A hint in the vectors' own words. */
export interface FixtureHint {
  readonly numaNodes: readonly number[] | null;
  readonly preferred: boolean;
}

/** The hints in an order of their own: upstream compares them sorted. */
export function sortedHints(hints: readonly FixtureHint[]): FixtureHint[] {
  const key = ({ numaNodes: nodes, preferred }: FixtureHint) => `${nodes?.length ?? 0} ${nodes} ${preferred}`;
  return hints
    .map(({ numaNodes: nodes, preferred }) => ({ numaNodes: nodes, preferred }))
    .sort((a, b) => (key(a) < key(b) ? -1 : 1));
}

export function hintsOf(
  topology: CpuTopology,
  hints: readonly { readonly mask: number | null; readonly preferred: boolean }[],
): FixtureHint[] {
  return sortedHints(
    hints.map(({ mask, preferred }) => ({ numaNodes: mask === null ? null : numaNodes(topology, mask), preferred })),
  );
}

/** Entries in the order of their keys, for comparisons. */
export function sortedEntries<V>(entries: Iterable<readonly [string, V]>): (readonly [string, V])[] {
  return [...entries].sort(([a], [b]) => (a < b ? -1 : 1));
}

/** A host with one CPU in each of these NUMA nodes. */
export function topologyOfNodes(ids: readonly number[]): CpuTopology {
  const cpus = ids.map((cell, id) => ({ id, core: id, socket: 0, cell, uncore: 0 }));
  return createTopology(cpus, { cpus: ids.length, cores: ids.length, sockets: 1, cells: ids.length, uncores: 1 });
}

/** The kubelet's message within the words that wrap it. */
export function unwrapped(message: string): string {
  return message.replace(/^Allocate failed due to /, '').replace(/, which is unexpected$/, '');
}
