import type { CpuSet } from '../cpu-set.ts';
import { type Host, MAX_CELL_ID } from '../host.ts';
import { type Admission, type AdmissionRules, admitPod, removePod } from './admission.ts';
import type { DevicePools } from './devices.ts';
import { type CellMemory, initialMemory } from './memory-state.ts';
import { TOPOLOGY_POLICIES, type TopologyPolicy } from './merge.ts';
import { type CpuOptions, NO_CPU_OPTIONS, OptionError, readCpuOptions, readTopologyOptions } from './options.ts';
import type { PodRequest } from './pod-request.ts';
import { type CpuAssignments, cpusOf, type KubeletState } from './state.ts';
import { createStaticPolicy, initialPool, type StaticPolicy } from './static-policy.ts';
import { MAX_DISTRIBUTED_CELLS } from './take.ts';
import { type CpuTopology, topologyOfHost } from './topology.ts';
import {
  type Behaviour,
  behaviourOf,
  nearestBehaviour,
  onlyDescribed,
  PREDICTED_VERSIONS,
  unpredictedGates,
} from './versions.ts';

interface TopologyManagerConfig {
  readonly policy: string;
  readonly scope?: string | undefined;
  readonly options?: Readonly<Record<string, string>> | undefined;
}

/** Option values are strings, as in the kubelet's own configuration. */
export interface KubeletConfig {
  /** As in the Node's status: `v1.36.2`. */
  readonly version: string;
  readonly host: Host;
  readonly cpuManager: { readonly policy: string; readonly options?: Readonly<Record<string, string>> | undefined };
  /** Default: policy none. */
  readonly topologyManager?: TopologyManagerConfig | undefined;
  /** Default: policy None. Static requires the memory of each NUMA node, including nodes without CPUs. */
  readonly memoryManager?: { readonly policy: string; readonly cells?: readonly CellMemory[] | undefined } | undefined;
  /** CPUs that are never assigned. */
  readonly reserved: CpuSet;
  /** NUMA nodes of devices, which may have no CPUs. */
  readonly deviceCells?: Iterable<number> | undefined;
  /** NUMA distances by node id (row) and position among the nodes (column), for prefer-closest-numa-nodes. */
  readonly distances?: Readonly<Record<number, readonly number[]>> | undefined;
  /** Configured feature gates; only those that affect admission matter. */
  readonly featureGates?: Readonly<Record<string, boolean>> | undefined;
  /** Whether a version that is not predicted counts as the nearest one that is. Default: false. */
  readonly nearest?: boolean | undefined;
}

/** Its functions are pure: they take a state and return a new one. */
export type Kubelet = ReturnType<typeof predictor>;

export interface Unpredictable {
  readonly unpredictable: string;
}

class UnpredictableError extends Error {}

/** NUMA nodes of which the sets are tried: the kubelet's own default limit. */
const MAX_CELLS = 8;

/** Never throws because of a configuration. */
export function createKubelet(config: KubeletConfig): Kubelet | Unpredictable {
  try {
    return predictor(config);
  } catch (error) {
    if (error instanceof UnpredictableError || error instanceof OptionError) return { unpredictable: error.message };
    throw error;
  }
}

function predictor(config: KubeletConfig) {
  const { behaviour, approximation } = behaviourFor(config);
  const rules = rulesOf(config, behaviour);
  const { topology, cpu } = rules;
  const memory = initialMemoryOf(config, topology);
  return Object.freeze({
    topology,
    /** Absent under policy none. */
    cpu,
    /** Which version's rules predict a kubelet that is not predicted itself, as a sentence; undefined for the others. */
    approximation,
    /** Without pods, or with these CPUs assigned. */
    initialState: (pools: DevicePools = new Map(), assignments: CpuAssignments = new Map()): KubeletState => {
      const pool = cpu ? initialPool(cpu) : topology.cpus;
      return { defaultSet: pool.minus(cpusOf(assignments)), assignments, pools, devices: new Map(), memory };
    },
    admit: (state: KubeletState, pod: PodRequest): Admission => admitPod(rules, state, pod),
    /** An unknown uid changes nothing. */
    remove: removePod,
  });
}

function behaviourFor(config: KubeletConfig) {
  const { version, nearest = false } = config;
  const reviewed = behaviourOf(version);
  if (reviewed) return { behaviour: reviewed, approximation: describedOnly(config) };
  const similar = nearest ? nearestBehaviour(version) : undefined;
  if (!similar) throw new UnpredictableError(`kubelet ${version} is not predicted, only ${PREDICTED_VERSIONS}`);
  return { behaviour: similar.behaviour, approximation: `kubelet ${version} is predicted as ${similar.version}` };
}

/** The change without a source that affects this kubelet, as a warning under `nearest`. @throws UnpredictableError */
function describedOnly({ version, nearest, cpuManager, topologyManager, memoryManager }: KubeletConfig) {
  const options = cpuManager.policy === 'static' ? readCpuOptions(cpuManager.options) : NO_CPU_OPTIONS;
  const scope = topologyManager?.scope ?? 'container';
  const row = onlyDescribed(version, { options, scope, isMemoryStatic: memoryManager?.policy === 'Static' });
  if (row === undefined) return undefined;
  const text = `${row.what}, by the description of kubernetes #${row.change} alone`;
  if (nearest === true) return `kubelet ${version}: ${text}`;
  throw new UnpredictableError(`from 1.${row.since} on, ${text}`);
}

function rulesOf(config: KubeletConfig, behaviour: Behaviour): AdmissionRules {
  const gates = unpredictedGates(config.version, config.featureGates);
  if (gates !== undefined) throw new UnpredictableError(gates);
  const policyText = config.topologyManager?.policy ?? 'none';
  const policy = TOPOLOGY_POLICIES.find((name) => name === policyText);
  const scope = config.topologyManager?.scope ?? 'container';
  if (policy === undefined) throw new UnpredictableError(`unknown topology manager policy ${policyText}`);
  if (scope !== 'container' && scope !== 'pod') throw new UnpredictableError(`unknown topology manager scope ${scope}`);
  const topology = topologyOf(config, policy, behaviour);
  return {
    topology,
    behaviour,
    cpu: cpuPolicyOf(config, topology, policy, behaviour),
    policy,
    // Under policy none the kubelet ignores the scope and admits containers one by one.
    scope: policy === 'none' ? 'container' : scope,
    numa: numaInfoOf(config, topology, policy),
  };
}

/**
 * The kubelet tries every set of NUMA nodes: those with CPUs, with devices, and all of them for memory. With more nodes
 * than that allows, the others are one node: no hint names them, but the mask of all nodes does.
 */
function topologyOf(config: KubeletConfig, policy: TopologyPolicy, { deviceHints }: Behaviour): CpuTopology {
  const { host, memoryManager, topologyManager, deviceCells = [] } = config;
  const memoryCells = memoryManager?.cells?.map(({ id }) => id);
  const topology = topologyOfHost(host, memoryCells);
  const count = topology.numaIds.length;
  const { maxCells } = readTopologyOptions(topologyManager?.options);
  if (policy !== 'none' && count > maxCells) {
    throw new UnpredictableError(
      `the host has ${count} NUMA nodes, and max-allowable-numa-nodes is ${maxCells}; such a kubelet does not start`,
    );
  }
  const isStatic = memoryManager?.policy === 'Static';
  if (count <= MAX_CELLS || (policy === 'none' && !isStatic)) return topology;
  if (isStatic || deviceHints === 'all-nodes') {
    const what = isStatic ? 'the static memory manager' : 'a kubelet older than 1.36';
    throw new UnpredictableError(
      `${what} tries every set of the ${count} NUMA nodes; at most ${MAX_CELLS} are predicted`,
    );
  }
  const used = new Set([...topology.cells.groups.keys(), ...deviceCells]);
  if (used.size <= MAX_CELLS) return topologyOfHost(host, [...used, MAX_CELL_ID]);
  throw new UnpredictableError(
    `${used.size} NUMA nodes of the host have CPUs or devices; at most ${MAX_CELLS} are predicted`,
  );
}

function cpuPolicyOf(
  config: KubeletConfig,
  topology: CpuTopology,
  policy: TopologyPolicy,
  behaviour: Behaviour,
): StaticPolicy | undefined {
  const { policy: cpuPolicy, options: optionTexts } = config.cpuManager;
  if (cpuPolicy === 'none') return undefined;
  if (cpuPolicy !== 'static') throw new UnpredictableError(`unknown CPU manager policy ${cpuPolicy}`);
  const options = readCpuOptions(optionTexts);
  const missing = config.reserved.minus(topology.cpus);
  if (!missing.isEmpty) throw new UnpredictableError(`reserved CPU ${missing.first} does not exist on the host`);
  checkHardware(options, topology, policy);
  return createStaticPolicy(topology, options, config.reserved, behaviour);
}

/** Source: pkg/kubelet/cm/cpumanager/policy_options.go, ValidateStaticPolicyOptions. */
function checkHardware(options: CpuOptions, topology: CpuTopology, policy: TopologyPolicy): void {
  const refuse = (why: string) => new UnpredictableError(`align-by-socket ${why}; such a kubelet does not start`);
  if (options.alignBySocket) {
    if (policy === 'single-numa-node') throw refuse('and single-numa-node are mutually exclusive');
    if (topology.counts.sockets > topology.counts.cells) throw refuse('needs no more sockets than NUMA nodes');
  }
  const cells = topology.cells.groups.size;
  if (options.distributeAcrossNuma && cells > MAX_DISTRIBUTED_CELLS) {
    throw new UnpredictableError(
      `distribute-cpus-across-numa is not predicted above ${MAX_DISTRIBUTED_CELLS} NUMA nodes; the host has ${cells}`,
    );
  }
}

function numaInfoOf(config: KubeletConfig, { numaIds }: CpuTopology, policy: TopologyPolicy) {
  const all = (1 << Math.min(numaIds.length, MAX_CELLS + 1)) - 1;
  const { preferClosest } = readTopologyOptions(config.topologyManager?.options);
  if (!preferClosest || policy === 'none' || policy === 'single-numa-node') return { all };
  const distances = numaIds.map((id) => config.distances?.[id]);
  if (!distances.every((row) => row !== undefined && row.length >= numaIds.length)) {
    throw new UnpredictableError('prefer-closest-numa-nodes is set, but the distances of the NUMA nodes are not known');
  }
  return { all, distances: distances.filter((row) => row !== undefined) };
}

function initialMemoryOf({ memoryManager }: KubeletConfig, { numaIds }: CpuTopology) {
  const policy = memoryManager?.policy ?? 'None';
  if (policy === 'None' || policy === 'none') return undefined;
  if (policy !== 'Static') throw new UnpredictableError(`unknown memory manager policy ${policy}`);
  if (!memoryManager?.cells) {
    throw new UnpredictableError('the memory manager is static, but the memory of the NUMA nodes is not known');
  }
  for (const cell of memoryManager.cells) checkReserved(cell);
  return initialMemory(numaIds, memoryManager.cells);
}

/** The kubelet's subtraction is unsigned: otherwise it would compute more memory than any host has. */
function checkReserved({ id, memory, hugePages = {}, reserved = {} }: CellMemory): void {
  const inPages = Object.values(hugePages).reduce((sum, bytes) => sum + bytes, 0);
  const sizes: Readonly<Record<string, number>> = { ...hugePages, memory: memory - inPages };
  const wide = Object.keys(reserved).find((type) => (reserved[type] ?? 0) > (sizes[type] ?? 0));
  if (wide === undefined) return;
  throw new UnpredictableError(
    `reservedMemory: ${reserved[wide]} bytes of ${wide} on NUMA node ${id}, which has ${sizes[wide] ?? 0}; reserve less`,
  );
}
