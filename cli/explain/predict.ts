import { DPU_HOST_LABEL } from '../../model/names.ts';
import { judgeMask, maskHostOf, maskUnheard } from '../../model/placement/mask-fit.ts';
import type { PlacementHost, PlacementNeeds } from '../../model/placement/needs.ts';
import { isExclusive, placementNeedsOf, readableNeedsOf } from '../../model/placement/preferences.ts';
import {
  judgeFit,
  NO_REPORT,
  type NodeVerdict,
  type Refused,
  STALE_REPORT,
  unfitShape,
} from '../../model/placement/verdict.ts';
import type { Hosts } from '../support/hosts.ts';
import { countText } from '../support/terminal.ts';
import { deadDpuCondition, type ExplainedNode, type ExplainedPod } from './objects.ts';
import type { NodeOpinion, Opinions } from './opinions.ts';

interface PredictionInput {
  readonly pod: ExplainedPod;
  readonly nodes: readonly ExplainedNode[];
  readonly reported: Hosts;
  /** Pods that have not started, in all namespaces: those in flight to a node use CPUs there. */
  readonly pending: readonly ExplainedPod[];
  /** Nodes with an expired agent Lease. */
  readonly silent: ReadonlySet<string>;
}

/**
 * The extender's verdicts, computed from the nodes' reports, for clusters where it is not reachable. They do not
 * include data that only the extender has: reservations of pods that are not bound, and delayed owners.
 */
export function predictOpinions({ pod, nodes, reported, pending, silent }: PredictionInput): Opinions {
  const needs = placementNeedsOf(pod);
  const { hosts, unusable } = reported;
  const byName = new Map(hosts.map((one) => [one.name, one]));
  const assumed = assumedByNode(pending, pod);
  const known = new Map<string, NodeVerdict>();
  const unfitModels = new Map<PlacementHost, Refused | undefined>();

  /** Why no node of this model can take the pod, whatever runs there. */
  const unfit = (model: PlacementHost): Refused | undefined => {
    if (!unfitModels.has(model)) unfitModels.set(model, unfitShape(needs, model, 'count-check'));
    return unfitModels.get(model);
  };

  /** Undefined: no prediction for the node. */
  const judge = (name: string): NodeVerdict | undefined => {
    const host = byName.get(name);
    if (needs.mask !== undefined) {
      if (host === undefined) return maskUnheard(NO_REPORT);
      return silent.has(name) ? maskUnheard(STALE_REPORT) : judgeMask(needs.mask, maskHostOf(host.host));
    }
    if (host === undefined || silent.has(name)) return undefined;
    const inFlight = (assumed.get(name) ?? []).filter(({ request }) => !host.host.shown.has(request.uid));
    const refused = unfit(host.empty);
    if (refused !== undefined) return refused;
    if (inFlight.length > 0) return judgeFit(needs, host.host, inFlight);
    const verdict = known.get(host.alike) ?? judgeFit(needs, host.host, []);
    known.set(host.alike, verdict);
    return verdict;
  };

  const hasRequest = isExclusive(needs) || needs.mask !== undefined;
  const opinions = nodes.map((node): NodeOpinion => {
    const name = node.metadata.name ?? '';
    const dead = deadDpu(pod, node);
    if (dead !== undefined) return { node: name, fits: false, kind: 'dpu', text: 'DPU not ready', detail: dead };
    const verdict = hasRequest ? judge(name) : undefined;
    if (verdict === undefined) return { node: name, fits: true, cpus: '', numaNodes: [], warnings: [] };
    if (!verdict.fits) return { missing: undefined, ...verdict, node: name };
    const { cpus = '', cells: numaNodes, warnings } = verdict;
    return { node: name, fits: true, cpus: `${cpus}`, numaNodes, warnings };
  });
  return { source: 'reports', nodes: opinions, notes: notesOf(isExclusive(needs), nodes, byName, unusable, silent) };
}

function notesOf(
  exclusive: boolean,
  nodes: readonly ExplainedNode[],
  byName: ReadonlyMap<string, unknown>,
  unusable: ReadonlyMap<string, string>,
  silent: ReadonlySet<string>,
): string[] {
  if (!exclusive) return [];
  const mute = nodes.filter(({ metadata }) => !byName.has(metadata.name ?? '') && !unusable.has(metadata.name ?? ''));
  const some = (names: readonly string[]) => names.slice(0, 3).join(', ') + (names.length > 3 ? ' …' : '');
  const notes = [...unusable].slice(0, 1).map(([node, why]) => `node ${node}: ${why}`);
  if (silent.size > 0) {
    const agents = countText(silent.size, 'agent has', 'agents have');
    notes.unshift(`${agents} stopped reporting, so their reports are old: ${some([...silent])}`);
  }
  if (mute.length > 0) {
    const names = mute.map(({ metadata }) => metadata.name ?? '');
    const count = countText(mute.length, 'node does', 'nodes do');
    notes.unshift(`${count} not report their topology, so they pass without a check: ${some(names)}`);
  }
  return notes;
}

/** Pods with dedicated CPUs that are bound or nominated and have not started. */
function assumedByNode(pending: readonly ExplainedPod[], own: ExplainedPod): Map<string, PlacementNeeds[]> {
  const assumed = new Map<string, PlacementNeeds[]>();
  for (const pod of pending) {
    const node = pod.spec.nodeName || pod.status?.nominatedNodeName;
    if (!node || pod.metadata.uid === own.metadata.uid) continue;
    const needs = readableNeedsOf(pod);
    if (needs && isExclusive(needs)) assumed.set(node, [...(assumed.get(node) ?? []), needs]);
  }
  return assumed;
}

/** The extender writes the state of a DPU to the node's condition. */
function deadDpu(pod: ExplainedPod, node: ExplainedNode): string | undefined {
  if (node.metadata.labels?.[DPU_HOST_LABEL] === undefined || pod.spec.hostNetwork === true) return undefined;
  if (pod.metadata.ownerReferences?.some(({ kind, controller }) => controller && kind === 'DaemonSet'))
    return undefined;
  const condition = deadDpuCondition(node);
  return condition && (condition.message ?? 'its DPU is dead');
}
