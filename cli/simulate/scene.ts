import { NO_CURRENT_REPORT, STOPPED_REPORT } from '../../diagnosis/facts.ts';
import type { Hosts, ReportedHost } from '../../diagnosis/hosts.ts';
import { deadDpu, type ExplainedNode } from '../../diagnosis/objects.ts';
import { assumedByNode } from '../../diagnosis/predict.ts';
import { schedulerRefusal } from '../../diagnosis/scheduler-view.ts';
import type { KubeClient } from '../../kube/client.ts';
import type { NodeTopology } from '../../kube/node-topology.ts';
import type { NetworkAttachmentDefinition } from '../../kube/resources.ts';
import { CpuSet, unionOf } from '../../model/cpu-set.ts';
import { PlumblineError } from '../../model/errors.ts';
import { CORDON, type SelectingSpec, toleratesAll } from '../../model/launcher/node-selection.ts';
import { groupBy } from '../../model/lists.ts';
import { SCHEDULABLE_LABEL } from '../../model/names.ts';
import type { PlacementNeeds } from '../../model/placement/needs.ts';
import { DEDICATED_SELECTORS } from '../../model/placement/preferences.ts';
import { ArgumentError } from '../support/exit-status.ts';
import { NETWORKS, NODES, PENDING_PODS } from '../support/kinds.ts';
import { assertReported, readAgentLeases, readIfAllowed, readTopologies } from '../support/lists.ts';
import type { Demand } from './demand.ts';
import type { Circumstances } from './simulate.ts';

export interface Scene {
  readonly topologies: readonly NodeTopology[];
  readonly nads: readonly NetworkAttachmentDefinition[];
  /** Undefined for hypothetical nodes, or if the user may not read them: then nothing is filtered. */
  readonly nodes: readonly ExplainedNode[] | undefined;
  /** Nodes with an expired agent Lease: their reports are old. */
  readonly silent: ReadonlySet<string>;
  readonly inFlight: ReadonlyMap<string, readonly PlacementNeeds[]>;
  readonly notes: readonly string[];
}

export const hypothetical = (topologies: readonly NodeTopology[]): Scene => {
  return { topologies, nads: [], nodes: undefined, silent: new Set(), inFlight: new Map(), notes: [] };
};

/** @param now milliseconds since 1970 @throws CliError, KubeError */
export async function readScene(client: KubeClient, now: number): Promise<Scene> {
  const [topologies, nodes, pending, agents, nads] = await Promise.all([
    readTopologies(client),
    readIfAllowed(client, ...NODES),
    readIfAllowed(client, ...PENDING_PODS),
    readAgentLeases(client, now),
    readIfAllowed(client, ...NETWORKS),
  ]);
  assertReported(topologies);
  return {
    topologies,
    nads: nads ?? [],
    nodes,
    silent: agents?.silent ?? new Set(),
    inFlight: assumedByNode(pending ?? []),
    notes: nodes === undefined ? ['you may not read nodes: selectors, cordons and taints do not count'] : [],
  };
}

export function hostsForDemands(scene: Scene, { hosts, unusable }: Hosts, demands: readonly Demand[]) {
  const byName = new Map((scene.nodes ?? []).map((node) => [node.metadata.name ?? '', node]));
  const why = new Map<string, string>();
  const exclude = (name: string, text: string | false | undefined) => text && why.set(name, text);
  for (const [name, text] of unusable) exclude(name, text);
  const toleratesCordon = demands.some(({ spec }) => toleratesAll(spec.tolerations, [CORDON]));
  for (const [name, node] of byName) {
    if (!unusable.has(name) && !hosts.some((host) => host.name === name)) exclude(name, NO_CURRENT_REPORT);
    exclude(name, deadDpu(node) && 'its DPU is dead');
    exclude(name, node.spec?.unschedulable === true && !toleratesCordon && 'it is cordoned');
  }
  for (const { name } of hosts) {
    exclude(name, scene.silent.has(name) && STOPPED_REPORT);
    exclude(name, scene.nodes !== undefined && !byName.has(name) && 'its Node does not exist');
  }
  const notes = [...groupBy([...why], ([, text]) => text)].map(
    ([text, entries]) => `excluded because ${text}: ${entries.map(([name]) => name).join(', ')}`,
  );
  return {
    hosts: hosts.filter(({ name }) => !why.has(name)),
    notes: [...scene.notes, ...notes],
    circumstances: circumstancesOf(scene, byName),
  };
}

/** The nodes whose cores decide the padding of a VM, as in the webhook: those that it may go to, else all. */
export function candidatesOf({ nodes }: Scene, { hosts }: Hosts, spec: SelectingSpec): readonly ReportedHost[] {
  const refused = new Set(
    (nodes ?? []).filter((node) => schedulerRefusal({ spec }, node)).map(({ metadata }) => metadata.name),
  );
  const open = hosts.filter(({ name }) => !refused.has(name));
  return open.length > 0 ? open : hosts;
}

/** KubeVirt keeps its launchers on nodes that virt-handler has marked. */
const launcherSpec = ({ spec }: Demand, marks: readonly string[]) => ({
  ...spec,
  nodeSelector: { ...spec.nodeSelector, ...Object.fromEntries(marks.map((label) => [label, 'true'])) },
});

/** What KubeVirt and kube-scheduler add to the verdict about a node. */
function circumstancesOf(scene: Scene, byName: ReadonlyMap<string, ExplainedNode>) {
  const labels = new Set([...byName.values()].flatMap(({ metadata }) => Object.keys(metadata.labels ?? {})));
  // One of them, depending on the release of KubeVirt.
  const dedicated = DEDICATED_SELECTORS.find((label) => labels.has(label));
  const marks = [SCHEDULABLE_LABEL, ...(dedicated === undefined ? [] : [dedicated])];
  return ({ name, host }: ReportedHost, demands: readonly Demand[]): Circumstances => {
    const node = byName.get(name);
    const refusals = new Map(
      demands.map((demand) => [demand, node && schedulerRefusal({ spec: launcherSpec(demand, marks) }, node)]),
    );
    const inFlight = (scene.inFlight.get(name) ?? []).filter(({ request }) => !host.owners.has(request.uid));
    const texts = demands.map((demand) => refusals.get(demand)?.text ?? '');
    const refusalKey = texts.some((text) => text !== '') ? texts.join('\n') : '';
    return { key: inFlight.length > 0 ? `in flight on ${name}` : refusalKey, refusals, inFlight };
  };
}

export interface Invention {
  readonly nodes: number;
  readonly topology: string;
  /** CPU list; default: the first core. */
  readonly reserved?: string | undefined;
  readonly physnet: readonly string[];
  readonly topologyManager: string;
  readonly kubelet: string;
}

const MAX_NODES = 10_000;

/** CPUs are numbered as on servers: first threads of all cores, then the second. @throws CliError */
export function inventNodes(invention: Invention): NodeTopology[] {
  const { nodes, topology, topologyManager, kubelet } = invention;
  if (!Number.isInteger(nodes) || nodes < 1 || nodes > MAX_NODES) {
    throw new ArgumentError(`--nodes '${nodes}': expected 1 to ${MAX_NODES}`);
  }
  const [, sockets = 0, coresEach = 0, threads = 0] = (/^(\d{1,2})x(\d{1,3})x(\d)$/.exec(topology) ?? []).map(Number);
  if (sockets < 1 || sockets > 8 || coresEach < 1 || threads < 1 || threads > 8) {
    const form = 'NUMA nodes (1 to 8) x cores of each x threads of a core (1 to 8)';
    throw new ArgumentError(`--topology '${topology}': expected ${form}, such as 2x16x2`);
  }
  const cores = sockets * coresEach;
  const siblings = (core: number) => CpuSet.of(Array.from({ length: threads }, (_, thread) => core + thread * cores));
  const cells = Array.from({ length: sockets }, (_, cell) => {
    const coresOfCell = Array.from({ length: coresEach }, (_, i) => siblings(cell * coresEach + i));
    return { id: cell, cpus: unionOf(coresOfCell).toString() };
  });
  const reserved = invention.reserved === undefined ? siblings(0) : cpuList('--reserved', invention.reserved);
  const status = {
    kubeletVersion: kubelet,
    cells,
    cores: Array.from({ length: cores }, (_, core) => siblings(core).toString()),
    reserved: reserved.toString(),
    cpuManager: { policy: 'static', options: threads > 1 ? { 'full-pcpus-only': 'true' } : {} },
    topologyManager: { policy: topologyManager, scope: 'container' },
    assignments: [],
    physnets: invention.physnet.map((text) => physnetOf(text, sockets)),
  };
  const digits = String(nodes - 1).length;
  return Array.from({ length: nodes }, (_, i) => ({
    apiVersion: 'plumbline.dev/v1alpha1' as const,
    kind: 'NodeTopology' as const,
    metadata: { name: `node-${String(i).padStart(digits, '0')}` } as NodeTopology['metadata'],
    status,
  }));
}

function physnetOf(text: string, sockets: number): { name: string; cells: string } {
  const [, name = '', list = ''] = /^([^=]+)=(.+)$/.exec(text) ?? [];
  if (name === '') throw new ArgumentError(`--physnet '${text}': expected NAME=NUMA-NODES, such as physnet0=0`);
  const cells = cpuList('--physnet', list);
  const foreign = cells.toArray().find((cell) => cell >= sockets);
  if (foreign !== undefined) throw new ArgumentError(`--physnet '${text}': there is no NUMA node ${foreign}`);
  return { name, cells: cells.toString() };
}

function cpuList(flag: string, text: string): CpuSet {
  try {
    return CpuSet.parse(text);
  } catch (error) {
    if (error instanceof PlumblineError) throw new ArgumentError(`${flag} '${text}': ${error.message}`);
    throw error;
  }
}
