import { CpuSet } from '../../model/cpu-set.ts';
import { createHost, type Host, type HostCpu } from '../../model/host.ts';
import type { Hint } from '../../model/kubelet/hints.ts';
import { readCpuOptions } from '../../model/kubelet/options.ts';
import { type PodRequest, podRequestOf, type RequestingPod } from '../../model/kubelet/pod-request.ts';
import type { KubeletState } from '../../model/kubelet/state.ts';
import { createStaticPolicy, type StaticPolicy, takeByTopology } from '../../model/kubelet/static-policy.ts';
import { type CpuTopology, createTopology, numaNodes } from '../../model/kubelet/topology.ts';
import { type Behaviour, behaviourOf } from '../../model/kubelet/versions.ts';
import type { VectorCase, Verdict } from './outcome.ts';

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
/** Each is checked with the version it holds for, if it applies to the model. */
export function upstreamCases<T extends UpstreamCase>(
  { upstream, reasons, cases }: UpstreamFile<T>,
  check: (item: T, behaviour: Behaviour, version: string) => Verdict,
): VectorCase[] {
  const checked = (item: T): Verdict => {
    if (item.skip !== undefined) return { skip: reasons[item.skip] ?? item.skip };
    const version = `v${item.since ?? upstream}`;
    const behaviour = behaviourOf(version);
    return behaviour ? check(item, behaviour, version) : { skip: `a kubelet ${version} is not predicted` };
  };
  return cases.map((item) => ({ name: `${item.id} (${item.description ?? ''})`, check: () => checked(item) }));
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
export function hintsOf(topology: CpuTopology, hints: readonly Hint[] | null): FixtureHint[] | null {
  if (hints === null) return null;
  const nodesOf = (mask: number | null) => (mask === null ? null : numaNodes(topology, mask));
  return sortedHints(hints.map(({ mask, preferred }) => ({ numaNodes: nodesOf(mask), preferred })));
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

/** The kubelet vectors' own words, and what they stand for in the model. */

export type FixturePod = NonNullable<RequestingPod['spec']> & { readonly uid: string };

export function requestOf({ uid, ...spec }: FixturePod, status?: RequestingPod['status']): PodRequest {
  return podRequestOf({ metadata: { uid }, spec, status });
}

interface Expectation {
  readonly cpuset?: string;
  readonly error?: boolean | { readonly message?: string; readonly type?: string };
  readonly defaultCPUSet?: string;
  readonly defaultCPUSetAfterAlloc?: string;
  readonly firstContainerCpuset?: string;
  readonly uncoreCacheIDs?: readonly number[];
  readonly defaultCPUSetAfterRemove?: string;
  readonly cpusets?: Readonly<Record<string, string>>;
  readonly value?: Readonly<Record<string, boolean>>;
  readonly hints?: readonly FixtureHint[] | null;
  readonly cpus?: number;
}
export interface KubeletCase extends UpstreamCase {
  readonly kind: string;
  readonly topology?: string;
  readonly available?: string;
  readonly numCPUs?: number;
  readonly cpuGroupSize?: number;
  readonly sorting?: string;
  readonly options?: Readonly<Record<string, string>>;
  readonly policy?: string;
  readonly numReservedCPUs?: number;
  readonly reservedCPUs?: string | null;
  readonly state?: { readonly defaultCPUSet: string; readonly assignments: Record<string, Record<string, string>> };
  readonly pod?: FixturePod;
  readonly container?: string;
  readonly podUID?: string;
  readonly hintNUMA?: readonly number[] | null;
  readonly error?: {
    readonly RequestedCPUs: number;
    readonly CpusPerCore: number;
    readonly AvailablePhysicalCPUs: number;
    readonly CausedByPhysicalCPUs: boolean;
  };
  readonly expect: Expectation;
  readonly expectSockets?: readonly number[];
  readonly expectNUMANodes?: readonly number[];
}
export function readTopologies(content: unknown): Map<string, CpuTopology> {
  const { topologies } = content as {
    topologies: Record<string, { cpus: HostCpu[]; counts: Parameters<typeof createTopology>[1] }>;
  };
  return new Map(Object.entries(topologies).map(([name, { cpus, counts }]) => [name, createTopology(cpus, counts)]));
}
/** A host of this topology, for what is checked on hosts alone. */
export function hostOf({ cells, cores, sockets, uncores }: CpuTopology): Host {
  const lists = ({ groups }: CpuTopology['cells']) => [...groups].map(([id, cpus]) => ({ id, cpus: `${cpus}` }));
  return createHost({
    cells: lists(cells),
    cores: [...cores.groups.values()].map(String),
    sockets: lists(sockets),
    uncores: lists(uncores),
  });
}
export function policyOf(item: KubeletCase, topology: CpuTopology): StaticPolicy {
  const options = readCpuOptions(item.options);
  const reserved = item.reservedCPUs
    ? CpuSet.parse(item.reservedCPUs)
    : takeByTopology(topology, options, topology.cpus, item.numReservedCPUs ?? 0);
  return createStaticPolicy(topology, options, reserved);
}
export function stateOf({ state }: KubeletCase): KubeletState {
  const assignments = Object.entries(state?.assignments ?? {}).map(([uid, containers]) => {
    return [uid, new Map(Object.entries(containers).map(([name, cpus]) => [name, CpuSet.parse(cpus)]))] as const;
  });
  const defaultSet = CpuSet.parse(state?.defaultCPUSet ?? '');
  return { defaultSet, assignments: new Map(assignments), pools: new Map(), devices: new Map() };
}
