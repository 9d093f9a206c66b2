import { hostsOf } from '../../diagnosis/hosts.ts';
import type { ExplainedNode, ExplainedPod } from '../../diagnosis/objects.ts';
import * as judged from '../../diagnosis/opinions.ts';
import { predictOpinions } from '../../diagnosis/predict.ts';
import {
  excludedBy,
  type JudgedTerm,
  refusedByAffinity,
  requiredTerms,
  schedulerRefusal,
  shortOf,
  termSelector,
  together,
} from '../../diagnosis/scheduler-view.ts';
import type { KubeClient } from '../../kube/client.ts';
import { NODE_TOPOLOGIES_PATH } from '../../kube/cluster-view/node-topologies.ts';
import { isFinalPhase } from '../../kube/cluster-view/pods.ts';
import { nodeTopology } from '../../kube/node-topology.ts';
import { isExclusive, placementNeedsOf } from '../../model/placement/preferences.ts';
import { refuse } from '../../model/placement/verdict.ts';
import { askAddress, askInCluster } from '../extender/ask.ts';
import type { ClusterAccess } from '../support/cluster.ts';
import { CliError, EXIT } from '../support/exit-status.ts';
import { NODES, PENDING_PODS, podsLabelled, podsOn } from '../support/kinds.ts';
import { readAgentLeases, readAll, readIfAllowed, readTopologies } from '../support/lists.ts';

/** Nodes whose pods' requests are summed, of those that nothing else excludes: one list call each. */
const MAX_SUMMED_NODES = 8;

/** Predicts the result on each node for a pod that waits for one. @throws CliError, KubeError */
export async function searchNodes(cluster: ClusterAccess, pod: ExplainedPod, choice: ExtenderChoice, now: number) {
  const { client } = cluster;
  const name = `${pod.metadata.namespace ?? ''}/${pod.metadata.name ?? ''}`;
  const [nodes, response] = await Promise.all([readAll(client, ...NODES), askExtender(cluster, name, choice)]);
  const { opinions, reported } =
    'nodes' in response
      ? { opinions: response, reported: undefined }
      : await predictFromReports(client, pod, nodes, response, now);
  const extenderAway = 'whyNot' in response && response.away ? response.whyNot : undefined;
  const needs = placementNeedsOf(pod);
  const nodeOpinions =
    isExclusive(needs) && needs.mayShare !== true ? opinions.nodes.map(judged.predictedOrNot) : opinions.nodes;
  const reads = isExclusive(needs) && nodeOpinions.some(({ fits }) => !fits);
  const { hosts } = reads
    ? (reported ?? hostsOf((await readIfAllowed(client, NODE_TOPOLOGIES_PATH, nodeTopology)) ?? []))
    : { hosts: [] };
  const all = await withScheduler(
    client,
    pod,
    nodes,
    judged.withNetworkMaps(judged.withSizes(needs, nodeOpinions, hosts), hosts),
  );
  const groups = judged.groupNodes(all).map((group) => judged.withTried(group, needs, hosts));
  return { groups, nodes: all.length, source: opinions.source, notes: opinions.notes, extenderAway };
}

export interface ExtenderChoice {
  /** --extender: its address; undefined: through the API server. */
  readonly extender?: string | undefined;
}

interface NoAnswer {
  readonly whyNot: string;
  /** Whether no extender answers in the pod of its scheduler, which is then the reason of the state. */
  readonly away: boolean;
}

/** @param pod namespace/name @throws CliError if an address from the user does not respond; KubeError */
async function askExtender(
  cluster: ClusterAccess,
  pod: string,
  { extender: url }: ExtenderChoice,
): Promise<judged.Opinions | NoAnswer> {
  const response =
    url === undefined
      ? await askInCluster(cluster, { pod })
      : { answer: await askAddress(url, pod, cluster.requestTimeout) };
  if ('missing' in response) return { whyNot: response.why, away: response.missing === 'silent' };
  const opinions = judged.extenderOpinions(response.answer);
  if (opinions !== undefined) return opinions;
  const whyNot = `${url ?? 'the extender'} did not answer as a Plumbline extender`;
  if (url !== undefined) throw new CliError(EXIT.unreachable, whyNot);
  return { whyNot, away: true };
}

async function predictFromReports(
  client: KubeClient,
  pod: ExplainedPod,
  nodes: readonly ExplainedNode[],
  { whyNot, away }: NoAnswer,
  now: number,
) {
  const needs = placementNeedsOf(pod);
  if (!isExclusive(needs) && needs.mask === undefined) {
    const reported = hostsOf([]);
    return { opinions: predictOpinions({ pod, nodes, reported, pending: [], silent: new Set() }), reported };
  }
  const [topologies, pending, agents] = await Promise.all([
    readTopologies(client),
    readIfAllowed(client, ...PENDING_PODS),
    readAgentLeases(client, now),
  ]);
  const silent = agents?.silent ?? new Set<string>();
  const reported = hostsOf(topologies);
  const prediction = predictOpinions({ pod, nodes, reported, pending: pending ?? [], silent });
  const notes = [`computed from the nodes’ reports${away ? '' : `, because ${whyNot}`}`, ...prediction.notes];
  return { opinions: { ...prediction, notes }, reported };
}

/** The pods that the required pod affinity and anti-affinity of a pod select. */
export function readTerms(client: Pick<KubeClient, 'get'>, pod: ExplainedPod): Promise<JudgedTerm[]> {
  const { namespace = '', uid } = pod.metadata;
  const resolvedTerms = requiredTerms(pod).map(async ({ kind, term }): Promise<JudgedTerm> => {
    const labelSelector = termSelector(term);
    if (labelSelector === undefined) return { kind, term, matches: undefined, selectsItself: false };
    const namespaces = term.namespaces.length === 0 ? [namespace] : term.namespaces;
    const lists = namespaces.map((name) => readIfAllowed(client, ...podsLabelled(name, labelSelector)));
    const read = await Promise.all(lists);
    if (read.includes(undefined)) return { kind, term, matches: undefined, selectsItself: false };
    const all = read.flatMap((list) => list ?? []);
    const live = all.filter(({ status }) => !isFinalPhase(status?.phase));
    const matches = live.filter(({ metadata, spec }) => metadata.uid !== uid && spec.nodeName);
    return { kind, term, matches, selectsItself: all.some(({ metadata }) => metadata.uid === uid) };
  });
  return Promise.all(resolvedTerms);
}

/** kube-scheduler's exclusions take precedence: it never calls the extender for those nodes. */
async function withScheduler(
  client: KubeClient,
  pod: ExplainedPod,
  nodes: readonly ExplainedNode[],
  opinions: readonly judged.NodeOpinion[],
): Promise<judged.NodeOpinion[]> {
  const byName = new Map(opinions.map((opinion) => [opinion.node, opinion]));
  const terms = await readTerms(client, pod);
  const labels = new Map(nodes.map(({ metadata }) => [metadata.name ?? '', metadata.labels]));
  const merged = nodes.map((node): judged.NodeOpinion => {
    const name = node.metadata.name ?? '';
    const text = 'the extender does not know this node yet';
    const opinion = byName.get(name) ?? { ...refuse('unknown-node', text), node: name };
    const refusal = schedulerRefusal(pod, node);
    const apart = refusedByAffinity(terms, node, (other) => labels.get(other));
    // Uncordoning a node does not help a pod that its affinity keeps off, such as the target of a migration off it.
    const schedulerOpinion = refusal?.kind === 'cordoned' ? (apart ?? refusal) : (refusal ?? apart);
    return schedulerOpinion === undefined ? opinion : together(schedulerOpinion, opinion);
  });
  const fitting = nodes.filter((_, index) => merged[index]?.fits).slice(0, MAX_SUMMED_NODES);
  const short = await Promise.all(
    fitting.map(async (node) => {
      const others = (await readIfAllowed(client, ...podsOn(node.metadata.name ?? ''))) ?? [];
      const counting = others.filter(({ status }) => !isFinalPhase(status?.phase));
      return shortOf(pod, node, counting) ?? excludedBy(pod, node, counting);
    }),
  );
  const refused = new Map(short.filter((node) => node !== undefined).map((node) => [node.node, node]));
  return merged.map((answer) => refused.get(answer.node) ?? answer);
}
