import { CpuSet } from '../../model/cpu-set.ts';
import { createHost, type Host } from '../../model/host.ts';
import { readCpuOptions } from '../../model/kubelet/options.ts';
import type { RequestingPod } from '../../model/kubelet/pod-request.ts';
import type { KubeletState } from '../../model/kubelet/state.ts';
import { createStaticPolicy, type StaticPolicy, takeByTopology } from '../../model/kubelet/static-policy.ts';
import { type CpuTopology, createTopology } from '../../model/kubelet/topology.ts';
import type { ContainerShape } from '../../model/shapes.ts';
import type { FixtureHint, UpstreamCase } from './kubelet-upstream.ts';

/** The kubelet vectors' own words, and what they stand for in the model. */

interface FixtureContainer {
  readonly name: string;
  readonly cpuRequest?: string;
  readonly cpuLimit?: string;
  readonly memory?: string;
  readonly restartPolicy?: string;
}

export interface FixturePod {
  readonly uid: string;
  readonly initContainers: readonly FixtureContainer[];
  readonly containers: readonly FixtureContainer[];
  readonly podLevel?: { readonly cpuRequest: string; readonly cpuLimit: string; readonly memory: string };
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
  readonly options?: Readonly<Record<string, string | boolean>>;
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

interface FixtureTopology {
  readonly numCPUs: number;
  readonly numCores: number;
  readonly numUncoreCache: number;
  readonly numSockets: number;
  readonly numNUMANodes: number;
  readonly cpus: Readonly<Record<string, { numa: number; socket: number; core: number; uncore: number }>>;
}

export function readTopologies(content: unknown): Map<string, CpuTopology> {
  const { topologies } = content as { topologies: Record<string, FixtureTopology> };
  return new Map(
    Object.entries(topologies).map(([name, fixture]) => {
      const cpus = Object.entries(fixture.cpus).map(([id, { numa, socket, core, uncore }]) => ({
        id: Number(id),
        core,
        socket,
        cell: numa,
        uncore,
      }));
      const counts = {
        cpus: fixture.numCPUs,
        cores: fixture.numCores,
        sockets: fixture.numSockets,
        cells: fixture.numNUMANodes,
        uncores: fixture.numUncoreCache,
      };
      return [name, createTopology(cpus, counts)];
    }),
  );
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
  const given = Object.entries(item.options ?? {}).map(([name, value]) => [name, `${value}`]);
  const options = readCpuOptions(Object.fromEntries(given));
  const reserved = item.reservedCPUs
    ? CpuSet.parse(item.reservedCPUs)
    : takeByTopology(topology, options, topology.cpus, item.numReservedCPUs ?? 0);
  return createStaticPolicy(topology, options, reserved);
}

export function stateOf({ state }: KubeletCase): KubeletState {
  const assignments = Object.entries(state?.assignments ?? {}).map(
    ([uid, containers]): [string, Map<string, CpuSet>] => [
      uid,
      new Map(Object.entries(containers).map(([name, cpus]) => [name, CpuSet.parse(cpus)])),
    ],
  );
  return {
    defaultSet: CpuSet.parse(state?.defaultCPUSet ?? ''),
    assignments: new Map(assignments),
    pools: new Map(),
    devices: new Map(),
  };
}

export function podOf(pod: FixturePod): RequestingPod {
  const container = ({ name, cpuRequest, cpuLimit, memory, restartPolicy }: FixtureContainer): ContainerShape => ({
    name,
    restartPolicy,
    resources: {
      requests: { ...(cpuRequest !== undefined && { cpu: cpuRequest }), ...(memory !== undefined && { memory }) },
      limits: { ...(cpuLimit !== undefined && { cpu: cpuLimit }), ...(memory !== undefined && { memory }) },
    },
  });
  const level = pod.podLevel;
  return {
    metadata: { uid: pod.uid },
    spec: {
      initContainers: pod.initContainers.map(container),
      containers: pod.containers.map(container),
      ...(level && {
        resources: {
          requests: { cpu: level.cpuRequest, memory: level.memory },
          limits: { cpu: level.cpuLimit, memory: level.memory },
        },
      }),
    },
  };
}
