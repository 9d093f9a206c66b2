import * as z from 'zod';
import { cpuListText, numaNodesText } from '../model/amounts.ts';
import { CpuSet } from '../model/cpu-set.ts';
import { byName, groupBy } from '../model/lists.ts';
import type { PlacementNeeds } from '../model/placement/needs.ts';
import { tryChanges } from '../model/placement/tried-changes.ts';
import { FOR_ROOM, type RefusalKind, type Refused, tooLargeFor } from '../model/placement/verdict.ts';
import type { NodeGroup, SchedulerRefusal } from './facts.ts';
import { networkMapFault, type ReportedHost } from './hosts.ts';
import { REMEDIES } from './node-remedies.ts';

export type NodeOpinion = FitOpinion | RefusedOpinion;

interface FitOpinion {
  readonly node: string;
  readonly fits: true;
  /** Of the extender, from 0 to 10. */
  readonly score?: number | undefined;
  /** The CPUs that the kubelet would assign; '' if not predicted. */
  readonly cpus: string;
  readonly numaNodes: readonly number[];
  readonly warnings: readonly string[];
}

export interface RefusedOpinion extends Omit<Refused, 'kind'> {
  readonly node: string;
  readonly kind: RefusalKind | SchedulerRefusal | 'not-predicted';
}

export const NOT_PREDICTED = 'not predicted: it may accept or refuse it';

/** @param text with few distinct values @param detail with the node's own values */
export function refusedOn(node: string, kind: RefusedOpinion['kind'], text: string, detail = text): RefusedOpinion {
  return { node, fits: false, kind, text, detail };
}

/** The node passes without a prediction of its CPUs. @param why the reason, if it is known */
export const notPredicted = (node: string, why: string): RefusedOpinion =>
  refusedOn(node, 'not-predicted', NOT_PREDICTED, why);

export interface Opinions {
  readonly source: 'extender' | 'reports';
  readonly nodes: readonly NodeOpinion[];
  readonly notes: readonly string[];
}

/** The extender's verdict about one node, in its response to `GET /explain?pod=`. */
export const extenderVerdict = z.union([
  z.object({
    node: z.string(),
    fits: z.literal(true),
    score: z.number().optional(),
    cpus: z.string(),
    numaNodes: z.array(z.number()),
    warnings: z.array(z.string()).default([]),
  }),
  z
    .object({
      node: z.string(),
      fits: z.literal(false),
      kind: z.string().transform((kind) => kind as RefusalKind),
      text: z.string(),
      reason: z.string(),
      missing: z.number().optional(),
    })
    .transform(({ reason: detail, ...verdict }) => ({ ...verdict, detail })),
]);

const extenderOpinion = z.object({ active: z.boolean(), nodes: z.array(extenderVerdict) });

/** The response of an extender to `GET /explain?pod=`; undefined if the document is not one. */
export function extenderOpinions(document: unknown): Opinions | undefined {
  const { data } = extenderOpinion.safeParse(document);
  if (data === undefined) return undefined;
  const standby = 'a standby of the extender answered: it does not know the reservations of pods in flight';
  return { source: 'extender', nodes: data.nodes, notes: data.active ? [] : [standby] };
}

const ORDER = Object.keys(REMEDIES);

/** Kinds that are not listed come with the last one. */
const rank = ({ kind }: NodeGroup) => {
  const at = ORDER.indexOf(kind);
  return at < 0 ? ORDER.length - 1 : at;
};

/** Groups nodes by reason: a thousand nodes have only a few reasons. */
export function groupNodes(opinions: readonly NodeOpinion[]): NodeGroup[] {
  const keyOf = (opinion: NodeOpinion) =>
    opinion.fits ? `fits ${opinion.warnings.join()}` : `${opinion.kind} ${opinion.text}`;
  const groups = groupBy(opinions, keyOf);
  return [...groups.values()].map(groupOf).sort((a, b) => rank(a) - rank(b) || b.count - a.count);
}

const missingOf = (opinion: NodeOpinion) => (opinion.fits ? 0 : (opinion.missing ?? Number.MAX_SAFE_INTEGER));

function groupOf(list: readonly NodeOpinion[]): NodeGroup {
  const compare = byName<NodeOpinion>(({ node }) => node);
  const sorted = [...list].sort((a, b) => missingOf(a) - missingOf(b) || compare(a, b));
  const first = sorted[0]!;
  const common = { count: list.length, nodes: sorted.map(({ node }) => node) };
  if (!first.fits) {
    const { kind, text, detail, missing } = first;
    return { kind, text, ...common, detail, missing };
  }
  const { cpus, numaNodes, warnings } = first;
  const text = warnings.length === 0 ? 'could run it' : 'could run it, with warnings';
  const cautions = warnings.join('; ');
  if (cpus === '') return { kind: 'fits', text, ...common, detail: cautions || 'on shared CPUs' };
  const detail = cautions || `it would get ${cpuListText(cpus)} on ${numaNodesText(numaNodes.join(','))}`;
  return { kind: 'fits', text, ...common, detail, cpus: CpuSet.parse(cpus).toArray(), numaNodes };
}

/** The extender reports a node that passes without a prediction as one that fits, on no CPUs. */
export function predictedOrNot(opinion: NodeOpinion): NodeOpinion {
  if (!opinion.fits || opinion.cpus !== '') return opinion;
  const why = opinion.warnings.join('; ') || 'its agent does not report, or its kubelet is not predicted';
  return notPredicted(opinion.node, why);
}

const isFull = (opinion: NodeOpinion) => !opinion.fits && (FOR_ROOM as readonly string[]).includes(opinion.kind);

export function withSizes(
  needs: PlacementNeeds,
  opinions: readonly NodeOpinion[],
  hosts: readonly ReportedHost[],
): readonly NodeOpinion[] {
  if (!opinions.some(isFull)) return opinions;
  const models = new Map(hosts.map(({ name, empty }) => [name, empty]));
  const tooLarge = new Map([...new Set(models.values())].map((model) => [model, tooLargeFor(needs, model)]));
  return opinions.map((opinion) => {
    const model = models.get(opinion.node);
    const refused = isFull(opinion) && model !== undefined ? tooLarge.get(model) : undefined;
    if (refused === undefined) return opinion;
    const { kind, detail, missing } = refused;
    const text = `does not fit even on an empty ${kind === 'no-common-node' ? 'NUMA node' : 'node'}`;
    return { ...refusedOn(opinion.node, 'too-large', text, detail), missing };
  });
}

/** The refusals that other CPUs, another size or other networks could end. */
const ROOM_ELSEWHERE = ['network-elsewhere', 'misaligned', 'too-large', 'larger-than-cells'] as const;
const CHANGEABLE: readonly NodeGroup['kind'][] = [...FOR_ROOM, ...ROOM_ELSEWHERE];

/** A node whose network map is broken may have the network that it does not report. */
export function withNetworkMaps(opinions: readonly NodeOpinion[], hosts: readonly ReportedHost[]): NodeOpinion[] {
  const faults = new Map(hosts.map(({ name, status }) => [name, networkMapFault(status)]));
  return opinions.map((opinion): NodeOpinion => {
    const fault = faults.get(opinion.node);
    if (opinion.fits || opinion.kind !== 'no-such-network' || fault === undefined) return opinion;
    return refusedOn(opinion.node, 'network-map', `${opinion.text}, and its network map is broken`, fault);
  });
}

export function withTried(group: NodeGroup, needs: PlacementNeeds, hosts: readonly ReportedHost[]): NodeGroup {
  if (!CHANGEABLE.includes(group.kind)) return group;
  const reported = hosts.find(({ name }) => name === group.nodes[0]);
  return reported === undefined ? group : { ...group, tried: tryChanges(needs, reported.host) };
}
