import type { KubeClient } from '../../kube/client.ts';
import { nodeTopology } from '../../kube/node-topology.ts';
import type { PlacementNeeds } from '../../model/placement/needs.ts';
import { isExclusive, placementNeedsOf } from '../../model/placement/preferences.ts';
import { tryChanges } from '../../model/placement/tried-changes.ts';
import { FOR_ROOM, refuse, tooLargeFor } from '../../model/placement/verdict.ts';
import type { NodeGroup } from '../../model/vm-state/facts.ts';
import type { ClusterAccess } from '../support/cluster.ts';
import { type Hosts, hostsOf, type ReportedHost } from '../support/hosts.ts';
import { NODE_TOPOLOGIES_PATH, readAgentLeases, readAll, readIfAllowed, readTopologies } from '../support/lists.ts';
import { type ExplainedNode, type ExplainedPod, explainedNode, explainedPod } from './objects.ts';
import {
  askExtender,
  type ExtenderChoice,
  groupNodes,
  type NodeOpinion,
  notPredicted,
  type Opinions,
  type RefusedOpinion,
} from './opinions.ts';
import { predictOpinions } from './predict.ts';
import { schedulerRefusal, shortOf } from './scheduler-view.ts';

/**
 * Number of nodes for which the requests of their pods are summed, of those that nothing else excludes: one list call
 * each.
 */
const MAX_SUMMED_NODES = 8;

/** Predicts the result on each node for a pod that waits for one. @throws CliError, KubeError */
export async function searchNodes(cluster: ClusterAccess, pod: ExplainedPod, choice: ExtenderChoice, now: number) {
  const { client } = cluster;
  const name = `${pod.metadata.namespace ?? ''}/${pod.metadata.name ?? ''}`;
  const [nodes, asked] = await Promise.all([
    readAll(client, '/api/v1/nodes', explainedNode),
    askExtender(cluster, name, choice),
  ]);
  const { opinions, reported }: OwnOpinions =
    'opinions' in asked ? asked : await ownOpinions(client, pod, nodes, asked.whyNot, now);
  const extenderAway = 'whyNot' in asked && asked.away ? asked.whyNot : undefined;
  const needs = placementNeedsOf(pod);
  const own = isExclusive(needs) && needs.mayShare !== true ? opinions.nodes.map(predictedOrNot) : opinions.nodes;
  const reads = isExclusive(needs) && own.some(({ fits }) => !fits);
  const { hosts } = reads
    ? (reported ?? hostsOf((await readIfAllowed(client, NODE_TOPOLOGIES_PATH, nodeTopology)) ?? []))
    : { hosts: [] };
  const all = await withScheduler(client, pod, nodes, withSizes(needs, own, hosts));
  const groups = groupNodes(all).map((group) => withTried(group, needs, hosts));
  return { groups, nodes: all.length, source: opinions.source, notes: opinions.notes, extenderAway };
}

/** The extender reports a node that passes without a prediction as one that fits, on no CPUs. */
function predictedOrNot(one: NodeOpinion): NodeOpinion {
  if (!one.fits || one.cpus !== '') return one;
  return notPredicted(
    one.node,
    one.warnings.join('; ') || 'its agent does not report, or its kubelet is not predicted',
  );
}

/** Marks nodes that could not hold the pod even if they were empty: no VM that ends would make room there. */
function withSizes(
  needs: PlacementNeeds,
  opinions: readonly NodeOpinion[],
  hosts: readonly ReportedHost[],
): readonly NodeOpinion[] {
  if (!opinions.some(isFull)) return opinions;
  const models = new Map(hosts.map(({ name, empty }) => [name, empty]));
  const tooLarge = new Map([...new Set(models.values())].map((model) => [model, tooLargeFor(needs, model)]));
  return opinions.map((one) => {
    const model = models.get(one.node);
    const refused = isFull(one) && model !== undefined ? tooLarge.get(model) : undefined;
    if (refused === undefined) return one;
    const { kind, detail, missing } = refused;
    const text = `does not fit even on an empty ${kind === 'no-common-node' ? 'NUMA node' : 'node'}`;
    return { node: one.node, fits: false, kind: 'too-large', text, detail, missing };
  });
}

const isFull = (one: NodeOpinion) => !one.fits && (FOR_ROOM as readonly string[]).includes(one.kind);

/** The refusals that other CPUs, another size or other networks could end. */
const CHANGEABLE: readonly NodeGroup['kind'][] = [
  ...FOR_ROOM,
  'network-elsewhere',
  'misaligned',
  'too-large',
  'larger-than-cells',
];

function withTried(group: NodeGroup, needs: PlacementNeeds, hosts: readonly ReportedHost[]): NodeGroup {
  if (!CHANGEABLE.includes(group.kind)) return group;
  const reported = hosts.find(({ name }) => name === group.nodes[0]);
  return reported === undefined ? group : { ...group, tried: tryChanges(needs, reported.host) };
}

interface OwnOpinions {
  readonly opinions: Opinions;
  readonly reported?: Hosts;
}

/** The same from the nodes' reports, if the extender is not reachable. */
async function ownOpinions(
  client: KubeClient,
  pod: ExplainedPod,
  nodes: readonly ExplainedNode[],
  whyNot: string,
  now: number,
): Promise<OwnOpinions> {
  const needs = placementNeedsOf(pod);
  if (!isExclusive(needs) && needs.mask === undefined) {
    return { opinions: predictOpinions({ pod, nodes, reported: hostsOf([]), pending: [], silent: new Set() }) };
  }
  const [topologies, pending, agents] = await Promise.all([
    readTopologies(client),
    readIfAllowed(client, '/api/v1/pods', explainedPod, { fieldSelector: 'status.phase=Pending' }),
    readAgentLeases(client, now),
  ]);
  const silent = agents?.silent ?? new Set<string>();
  const reported = hostsOf(topologies);
  const own = predictOpinions({ pod, nodes, reported, pending: pending ?? [], silent });
  const notes = [`computed from the nodes’ reports, because ${whyNot}`, ...own.notes];
  return { opinions: { ...own, notes }, reported };
}

/**
 * Adds kube-scheduler's own exclusions. They take precedence over Plumbline's: it never calls the extender for those
 * nodes.
 */
async function withScheduler(
  client: KubeClient,
  pod: ExplainedPod,
  nodes: readonly ExplainedNode[],
  opinions: readonly NodeOpinion[],
): Promise<NodeOpinion[]> {
  const byName = new Map(opinions.map((one) => [one.node, one]));
  const merged = nodes.map((node): NodeOpinion => {
    const name = node.metadata.name ?? '';
    const text = 'the extender does not know this node yet';
    const own = byName.get(name) ?? { ...refuse('unknown-node', text), node: name };
    const refused = schedulerRefusal(pod, node);
    return refused === undefined ? own : together(refused, own);
  });
  const fitting = nodes.filter((_, index) => merged[index]?.fits).slice(0, MAX_SUMMED_NODES);
  const short = await Promise.all(
    fitting.map(async (node) => {
      const query = { fieldSelector: `spec.nodeName=${node.metadata.name}` };
      const others = (await readIfAllowed(client, '/api/v1/pods', explainedPod, query)) ?? [];
      const counting = others.filter(({ status }) => !['Failed', 'Succeeded'].includes(status?.phase ?? ''));
      return shortOf(pod, node, counting);
    }),
  );
  const refused = new Map(short.filter((one) => one !== undefined).map((one) => [one.node, one]));
  return merged.map((one) => refused.get(one.node) ?? one);
}

/** Uncordoning a node that is also full does not help. */
function together(refused: RefusedOpinion, own: NodeOpinion): RefusedOpinion {
  if (refused.kind !== 'cordoned' || own.fits) return refused;
  const also = (reason: string) => `cordoned, and ${reason}`;
  return { ...refused, kind: 'cordoned-and-more', text: also(own.text), detail: also(own.detail) };
}
