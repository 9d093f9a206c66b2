import { isDpuHost } from '../kube/cluster-view/nodes.ts';
import { countText } from '../model/amounts.ts';
import { judgeMask, maskHostOf, maskNotReported } from '../model/placement/mask-fit.ts';
import { type PlacementHost, type PlacementNeeds, sharesOn, unpredictableFor } from '../model/placement/needs.ts';
import { isExclusive, placementNeedsOf, readableNeedsOf } from '../model/placement/preferences.ts';
import {
  judgeFit,
  NO_REPORT,
  type NodeVerdict,
  type Refused,
  STALE_REPORT,
  UNCHECKED,
  unfitShape,
} from '../model/placement/verdict.ts';
import { NO_CURRENT_REPORT, STOPPED_REPORT } from './facts.ts';
import type { Hosts } from './hosts.ts';
import { deadDpu, type ExplainedNode, type ExplainedPod } from './objects.ts';
import { type NodeOpinion, notPredicted, type Opinions, refusedOn } from './opinions.ts';

/** Why a node passes although its kubelet might refuse the pod; undefined: it is refused, or predicted. */
function whyNotPredicted(needs: PlacementNeeds, host: PlacementHost, verdict: NodeVerdict): string | undefined {
  if (!verdict.fits || verdict.cpus !== undefined || sharesOn(needs, host)) return undefined;
  return `its kubelet cannot be predicted: ${unpredictableFor(needs, host) ?? 'its report has no state'}`;
}

interface PredictionInput {
  readonly pod: ExplainedPod;
  readonly nodes: readonly ExplainedNode[];
  readonly reported: Hosts;
  readonly pending: readonly ExplainedPod[];
  readonly silent: ReadonlySet<string>;
}

/** From the reports, without what only the extender has: reservations of unbound pods, delayed owners. */
export function predictOpinions({ pod, nodes, reported, pending, silent }: PredictionInput): Opinions {
  const needs = placementNeedsOf(pod);
  const { hosts, unusable } = reported;
  const byName = new Map(hosts.map((host) => [host.name, host]));
  const assumed = assumedByNode(pending, pod.metadata.uid);
  const sharedVerdicts = new Map<string, NodeVerdict>();
  const unfitModels = new Map<PlacementHost, Refused | undefined>();

  /** Why no node of this model can take the pod, whatever runs there. */
  const unfit = (model: PlacementHost): Refused | undefined => {
    if (!unfitModels.has(model)) unfitModels.set(model, unfitShape(needs, model, 'count-check'));
    return unfitModels.get(model);
  };

  /** A text: why there is no prediction for the node. */
  const verdictOf = (name: string): NodeVerdict | string => {
    const host = byName.get(name);
    if (needs.mask !== undefined) {
      if (host === undefined) return maskNotReported(NO_REPORT);
      return silent.has(name) ? maskNotReported(STALE_REPORT) : judgeMask(needs.mask, maskHostOf(host.host));
    }
    if (host === undefined) return unusable.get(name) ?? NO_CURRENT_REPORT;
    if (silent.has(name)) return STOPPED_REPORT;
    const inFlight = (assumed.get(name) ?? []).filter(({ request }) => !host.host.owners.has(request.uid));
    const refused = unfit(host.empty);
    if (refused !== undefined) return refused;
    if (inFlight.length > 0) return judgeFit(needs, host.host, inFlight);
    const verdict = sharedVerdicts.get(host.alike) ?? judgeFit(needs, host.host, []);
    sharedVerdicts.set(host.alike, verdict);
    return verdict;
  };

  const hasRequest = isExclusive(needs) || needs.mask !== undefined;
  const opinions = nodes.map((node): NodeOpinion => {
    const name = node.metadata.name ?? '';
    const dead = deadDpuFor(pod, node);
    if (dead !== undefined) return refusedOn(name, 'dpu', 'DPU not ready', dead);
    const verdict = hasRequest ? verdictOf(name) : UNCHECKED;
    if (typeof verdict === 'string') return notPredicted(name, verdict);
    const host = byName.get(name)?.host;
    const why = host && isExclusive(needs) ? whyNotPredicted(needs, host, verdict) : undefined;
    if (why !== undefined) return notPredicted(name, why);
    if (!verdict.fits) return { missing: undefined, ...verdict, node: name };
    const { cpus = '', cells: numaNodes, warnings, score } = verdict;
    return { node: name, fits: true, score, cpus: `${cpus}`, numaNodes, warnings };
  });
  const mute = nodes
    .map(({ metadata }) => metadata.name ?? '')
    .filter((name) => !byName.has(name) && !unusable.has(name));
  return { source: 'reports', nodes: opinions, notes: isExclusive(needs) ? notesOf(mute, unusable, silent) : [] };
}

/** Nodes that a note names. */
const MAX_NAMED = 3;

function notesOf(mute: readonly string[], unusable: Hosts['unusable'], silent: ReadonlySet<string>): string[] {
  const some = (names: readonly string[]) =>
    names.slice(0, MAX_NAMED).join(', ') + (names.length > MAX_NAMED ? ' …' : '');
  const notes = [...unusable].slice(0, MAX_NAMED).map(([node, why]) => `node ${node}: ${why}`);
  if (unusable.size > MAX_NAMED) notes.push(`${unusable.size - MAX_NAMED} more reports are not used`);
  if (silent.size > 0) {
    const agents = countText(silent.size, 'agent has', 'agents have');
    const reports = silent.size === 1 ? 'its report is' : 'their reports are';
    notes.unshift(`${agents} stopped reporting, so ${reports} old: ${some([...silent])}`);
  }
  if (mute.length > 0) {
    const count = countText(mute.length, 'node does', 'nodes do');
    notes.unshift(`${count} not report their topology, so they pass without a check: ${some(mute)}`);
  }
  return notes;
}

/** Pods with dedicated CPUs that are bound or nominated and have not started. */
export function assumedByNode(pending: readonly ExplainedPod[], exceptUid?: string): Map<string, PlacementNeeds[]> {
  const assumed = new Map<string, PlacementNeeds[]>();
  for (const pod of pending) {
    const node = pod.spec.nodeName || pod.status?.nominatedNodeName;
    if (!node || (exceptUid !== undefined && pod.metadata.uid === exceptUid)) continue;
    const needs = readableNeedsOf(pod);
    if (needs && isExclusive(needs)) assumed.set(node, [...(assumed.get(node) ?? []), needs]);
  }
  return assumed;
}

/** Why the node’s dead DPU rules it out: not for pods without the pod network, and those of DaemonSets. */
function deadDpuFor(pod: ExplainedPod, node: ExplainedNode): string | undefined {
  const needsDpu =
    isDpuHost(node) &&
    pod.spec.hostNetwork !== true &&
    !pod.metadata.ownerReferences?.some(({ kind, controller }) => controller && kind === 'DaemonSet');
  return needsDpu ? deadDpu(node) : undefined;
}
