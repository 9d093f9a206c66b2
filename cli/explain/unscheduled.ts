import type { KubeClient } from '../../kube/client.ts';
import { isExclusive, placementNeedsOf } from '../../model/placement/pod-needs.ts';
import { readAgentLeases } from '../support/agents.ts';
import type { ClusterAccess } from '../support/cluster.ts';
import { readAll, readIfAllowed, readTopologies } from '../support/lists.ts';
import { askExtender, type ExtenderChoice } from './ask-extender.ts';
import type { Finding } from './explanation.ts';
import { groupNodes, type NodeGroup } from './groups.ts';
import { type ExplainedNode, type ExplainedPod, explainedNode, explainedPod } from './objects.ts';
import type { NodeOpinion, Opinions, RefusedOpinion } from './opinion.ts';
import { predictOpinions } from './predict.ts';
import { remediesOf } from './remedies.ts';
import { type SchedulerSeen, schedulerAway, schedulerOf } from './scheduler.ts';
import { schedulerRefusal, shortOf } from './scheduler-view.ts';

/** Of nodes that nothing else rules out, so many have the requests of their pods summed up: that is a list for each. */
const SUMMED = 8;

/** A pod that waits for a node: node by node, why. @throws CliError, KubeError */
export async function unscheduledPod(
  cluster: ClusterAccess,
  pod: ExplainedPod,
  choice: ExtenderChoice,
  scheduler: SchedulerSeen,
  now: number,
): Promise<Finding> {
  const { client } = cluster;
  const name = `${pod.metadata.namespace ?? ''}/${pod.metadata.name ?? ''}`;
  const [nodes, asked] = await Promise.all([
    readAll(client, '/api/v1/nodes', explainedNode),
    askExtender(cluster, name, choice),
  ]);
  const opinions = 'opinions' in asked ? asked.opinions : await ownOpinions(client, pod, nodes, asked.whyNot, now);
  const all = await withScheduler(client, pod, nodes, opinions.nodes);
  const groups = groupNodes(all);
  const away = schedulerAway(pod, scheduler);
  const scheduled = pod.status?.conditions.find(({ type }) => type === 'PodScheduled');
  return {
    stage: 'unscheduled',
    why: away?.why ?? whyOf(groups, all.length),
    help: away === undefined ? helpOf(pod, groups, scheduled !== undefined) : [away.help],
    scheduler: scheduled?.status === 'False' ? scheduled.message : undefined,
    source: opinions.source,
    nodes: groups,
    notes: opinions.notes,
  };
}

/** The same from the nodes' reports, where the extender cannot be asked. */
async function ownOpinions(
  client: KubeClient,
  pod: ExplainedPod,
  nodes: readonly ExplainedNode[],
  whyNot: string,
  now: number,
): Promise<Opinions> {
  const needs = placementNeedsOf(pod);
  if (!isExclusive(needs) && needs.mask === undefined)
    return predictOpinions({ pod, nodes, topologies: [], pending: [], silent: new Set() });
  const [topologies, pending, agents] = await Promise.all([
    readTopologies(client),
    readIfAllowed(client, '/api/v1/pods', explainedPod, { fieldSelector: 'status.phase=Pending' }),
    readAgentLeases(client, now),
  ]);
  const silent = agents?.silent ?? new Set<string>();
  const own = predictOpinions({ pod, nodes, topologies, pending: pending ?? [], silent });
  return { ...own, notes: [`worked out from the nodes’ reports, since ${whyNot}`, ...own.notes] };
}

/** What kube-scheduler itself rules out comes before what Plumbline says: it never asks about those nodes. */
async function withScheduler(
  client: KubeClient,
  pod: ExplainedPod,
  nodes: readonly ExplainedNode[],
  opinions: readonly NodeOpinion[],
): Promise<NodeOpinion[]> {
  const byName = new Map(opinions.map((one) => [one.node, one]));
  const merged = nodes.map((node): NodeOpinion => {
    const name = node.metadata.name ?? '';
    const unseen = { node: name, fits: false, kind: 'unknown-node', text: 'not known to the extender yet' } as const;
    const own = byName.get(name) ?? { ...unseen, detail: unseen.text };
    const refused = schedulerRefusal(pod, node);
    return refused === undefined ? own : together(refused, own);
  });
  const fitting = new Set(
    merged
      .filter(({ fits }) => fits)
      .slice(0, SUMMED)
      .map(({ node }) => node),
  );
  const short = await Promise.all(
    nodes
      .filter(({ metadata }) => fitting.has(metadata.name ?? ''))
      .map(async (node) => {
        const query = { fieldSelector: `spec.nodeName=${node.metadata.name}` };
        const others = (await readIfAllowed(client, '/api/v1/pods', explainedPod, query)) ?? [];
        const counting = others.filter(({ status }) => !['Failed', 'Succeeded'].includes(status?.phase ?? ''));
        return shortOf(pod, node, counting);
      }),
  );
  const refused = new Map(short.filter((one) => one !== undefined).map((one) => [one.node, one]));
  return merged.map((one) => refused.get(one.node) ?? one);
}

/** Uncordoning a node that is full as well would help nobody. */
function together(refused: RefusedOpinion, own: NodeOpinion): RefusedOpinion {
  if (refused.kind !== 'cordoned' || own.fits) return refused;
  return {
    ...refused,
    kind: 'cordoned-and-more',
    text: `cordoned, and ${own.text}`,
    detail: `cordoned, and ${own.detail}`,
  };
}

function whyOf(groups: readonly NodeGroup[], total: number): string {
  if (total === 0) return 'the cluster has no nodes';
  const fits = groups.filter(({ kind }) => kind === 'fits').reduce((sum, { count }) => sum + count, 0);
  if (fits > 0) return `it waits although ${fits} of ${total} nodes would take it`;
  const [first] = groups;
  if (groups.length === 1) return `${total === 1 ? 'the only node' : `all ${total} nodes`}: ${first?.text}`;
  return `none of ${total} nodes can take it; nearest to it: ${first?.text}`;
}

function helpOf(pod: ExplainedPod, groups: readonly NodeGroup[], tried: boolean): string[] {
  if (!tried) return [`check the scheduler: ${schedulerOf(pod)} has not looked at it yet`];
  const fits = groups.find(({ kind }) => kind === 'fits');
  if (!fits) return remediesOf(groups);
  return [
    'wait: kube-scheduler tries again at the next change of a node or pod, and every 5 minutes',
    'see what kube-scheduler says below: volumes, spread and other rules of its own are not looked at here',
  ];
}
