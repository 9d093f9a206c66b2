import { CpuSet } from '../model/cpu-set.ts';
import { withPod } from '../model/placement/needs.ts';
import { isExclusive, placementNeedsOf } from '../model/placement/preferences.ts';
import type { NodeGroup } from './facts.ts';
import type { Hosts, ReportedHost } from './hosts.ts';
import type { ExplainedNode, ExplainedPod } from './objects.ts';
import {
  groupNodes,
  type NodeOpinion,
  predictedOrNot,
  type RefusedOpinion,
  withNetworkMaps,
  withSizes,
  withTried,
} from './opinions.ts';
import { predictOpinions } from './predict.ts';
import { excludedBy, type JudgedTerm, refusedByAffinity, schedulerRefusal, shortOf } from './scheduler-view.ts';

/** A launcher that is to run on another node. */
export interface Leaving {
  /** As KubeVirt would create it again, with a uid of its own and without a node. */
  readonly pod: ExplainedPod;
  /** The launcher that runs now, which counts where it is until the other one has taken over. */
  readonly replaces: string | undefined;
  /** Its required affinity to pods. */
  readonly terms: readonly JudgedTerm[];
}

export interface NewPlace {
  readonly node: string;
  /** Empty: shared CPUs. */
  readonly cpus: CpuSet;
  readonly numaNodes: readonly number[];
  /** Number of nodes that the extender scores as high, this one included. */
  readonly equal: number;
}

/** What is known about the nodes that remain. */
export interface Remaining {
  readonly nodes: readonly ExplainedNode[];
  readonly reported: Hosts;
  readonly silent: ReadonlySet<string>;
  /** Pods that have not started. */
  readonly pending: readonly ExplainedPod[];
  /** The pods that count on a node; undefined: not readable, or too many nodes were read. */
  podsOn(node: string): Promise<readonly ExplainedPod[] | undefined>;
}

/** The score of a node that the extender does not compare. */
const UNSCORED = 0;
/** Nodes of equal score whose pods are counted, as kube-scheduler prefers the emptiest. */
const MAX_COMPARED_NODES = 8;
const MAX_ORDERS = 24;

export interface Relocation {
  /** The place of each that has one, in an order in which they find it. */
  readonly places: ReadonlyMap<Leaving, NewPlace>;
  /** For each other: the nodes by reason, after all that have a place are there. */
  readonly refusals: ReadonlyMap<Leaving, readonly NodeGroup[]>;
  /** Whether fewer have a place in another order. */
  readonly orderMatters: boolean;
}

/**
 * Where each goes, one after the other, by the prediction of the kubelets: all of a group before the next group. Those
 * without a place go first in the next try, until all have one, or no new order results.
 */
export async function relocate(groups: readonly (readonly Leaving[])[], remaining: Remaining): Promise<Relocation> {
  const world: World = {
    ...remaining,
    byName: new Map(remaining.nodes.map((node) => [node.metadata.name ?? '', node])),
    hostOf: new Map(remaining.reported.hosts.map((host) => [host.name, host])),
  };
  const opinions = new Map(groups.flat().map((pod) => [pod, opinionsOf(pod, world)]));
  const choices = (pod: Leaving) => (opinions.get(pod) ?? []).filter(({ fits }) => fits).length;
  const inGroups = (order: readonly Leaving[]) => groups.flatMap((group) => order.filter((pod) => group.includes(pod)));
  const outcomes: Omit<Relocation, 'orderMatters'>[] = [];
  const attempt = async (order: readonly Leaving[]) => {
    const outcome = await new Attempt(world, opinions).run(order);
    outcomes.push(outcome);
    return outcome;
  };

  let order = inGroups(groups.flat().toSorted((a, b) => choices(a) - choices(b) || cpusOf(b.pod) - cpusOf(a.pod)));
  await attempt(inGroups(order.toReversed()));
  const triedOrders = new Set<string>();
  for (let tries = 0; tries < MAX_ORDERS; tries++) {
    const text = order.map(({ pod }) => pod.metadata.uid).join();
    if (triedOrders.has(text)) break;
    triedOrders.add(text);
    const { places } = await attempt(order);
    if (places.size === order.length) break;
    order = inGroups([...order.filter((pod) => !places.has(pod)), ...order.filter((pod) => places.has(pod))]);
  }
  const most = Math.max(...outcomes.map(({ places }) => places.size));
  const best = outcomes.findLast(({ places }) => places.size === most)!;
  return { ...best, orderMatters: outcomes.some(({ places }) => places.size < most) };
}

interface World extends Remaining {
  readonly byName: ReadonlyMap<string, ExplainedNode>;
  readonly hostOf: ReadonlyMap<string, ReportedHost>;
}

function cpusOf(pod: ExplainedPod): number {
  return placementNeedsOf(pod).request.containers.reduce((sum, { cpus }) => sum + cpus, 0);
}

/** Without affinity to pods and without requests other than those of the kubelet's managers: both change with moves. */
function opinionsOf({ pod }: Leaving, world: World): NodeOpinion[] {
  const refusals = world.nodes.map((node) => schedulerRefusal(pod, node));
  const open = world.nodes.filter((_, index) => refusals[index] === undefined);
  const refused = refusals.filter((refusal) => refusal !== undefined);
  return [...predicted(pod, open, world.reported.hosts, world), ...refused].sort(byScore);
}

function predicted(
  pod: ExplainedPod,
  nodes: readonly ExplainedNode[],
  hosts: readonly ReportedHost[],
  { reported: { unusable }, silent, pending }: World,
): readonly NodeOpinion[] {
  const reported = { hosts: [...hosts], unusable };
  const { nodes: opinions } = predictOpinions({ pod, nodes, reported, pending, silent });
  const needs = placementNeedsOf(pod);
  return isExclusive(needs) && needs.mayShare !== true ? opinions.map(predictedOrNot) : opinions;
}

/** Nodes that lack CPUs of a mask which may fall back come after all that have them. */
function scoreOf(opinion: NodeOpinion): number {
  if (!opinion.fits) return Number.NEGATIVE_INFINITY;
  return opinion.cpus === '' && opinion.warnings.length > 0 ? -1 : (opinion.score ?? UNSCORED);
}

function byScore(a: NodeOpinion, b: NodeOpinion): number {
  const [x, y] = [scoreOf(a), scoreOf(b)];
  if (x !== y) return y - x;
  return a.node < b.node ? -1 : 1;
}

/** One try, and the nodes to which something has moved in it. */
class Attempt {
  readonly #world: World;
  /** The opinions about all nodes before anyone moves, the best first. */
  readonly #before: ReadonlyMap<Leaving, readonly NodeOpinion[]>;
  readonly #hosts = new Map<string, ReportedHost>();
  readonly #pods = new Map<string, ExplainedPod[]>();
  /** The new node of a launcher, by its uid. */
  readonly #movedTo = new Map<string, string>();

  constructor(world: World, before: ReadonlyMap<Leaving, readonly NodeOpinion[]>) {
    this.#world = world;
    this.#before = before;
  }

  async run(order: readonly Leaving[]): Promise<Omit<Relocation, 'orderMatters'>> {
    const places = new Map<Leaving, NewPlace>();
    const refusals = new Map<Leaving, readonly NodeGroup[]>();
    for (const leaving of order) {
      const choice = await this.#choose(leaving);
      if ('node' in choice) {
        places.set(leaving, choice);
        this.#move(leaving, choice.node);
      } else refusals.set(leaving, groupsOf(leaving.pod, choice.refused, this.#world));
    }
    return { places, refusals };
  }

  #hostOf(node: string): ReportedHost | undefined {
    return this.#hosts.get(node) ?? this.#world.hostOf.get(node);
  }

  #move({ pod, replaces }: Leaving, node: string): void {
    const reported = this.#hostOf(node);
    const needs = placementNeedsOf(pod);
    if (reported !== undefined && isExclusive(needs)) {
      const { name, status, empty } = reported;
      const alike = `${reported.alike}\n${pod.metadata.uid ?? ''}`;
      this.#hosts.set(node, { name, status, empty, host: withPod(reported.host, needs.request), alike });
    }
    this.#pods.set(node, [...(this.#pods.get(node) ?? []), pod]);
    if (replaces !== undefined) this.#movedTo.set(replaces, node);
  }

  async #choose(leaving: Leaving): Promise<NewPlace | { readonly refused: readonly NodeOpinion[] }> {
    const unchanged = (this.#before.get(leaving) ?? []).filter(({ node }) => !this.#pods.has(node));
    const again = [...this.#pods.keys()]
      .flatMap((name) => this.#world.byName.get(name) ?? [])
      .flatMap((node): readonly NodeOpinion[] => {
        const refusal = schedulerRefusal(leaving.pod, node);
        if (refusal !== undefined) return [refusal];
        const host = this.#hostOf(node.metadata.name ?? '');
        return predicted(leaving.pod, [node], host === undefined ? [] : [host], this.#world);
      });
    const refused: NodeOpinion[] = [];
    const equals: Extract<NodeOpinion, { fits: true }>[] = [];
    let equal = 0;
    for (const opinion of [...unchanged, ...again].sort(byScore)) {
      const best = equals[0];
      if (best !== undefined && (!opinion.fits || scoreOf(opinion) < scoreOf(best))) break;
      const late = opinion.fits ? await this.#lateRefusal(leaving, opinion.node, equals.length) : undefined;
      if (!opinion.fits || late !== undefined) refused.push(late ?? opinion);
      else if (++equal <= MAX_COMPARED_NODES) equals.push(opinion);
    }
    const emptiest = equal > MAX_COMPARED_NODES ? equals[0] : await this.#emptiestOf(equals);
    if (emptiest === undefined) return { refused };
    const { node, cpus, numaNodes } = emptiest;
    return { node, cpus: CpuSet.parse(cpus), numaNodes, equal };
  }

  /** What depends on the pods of a node, which are only read until there are enough nodes to compare. */
  async #lateRefusal({ pod, terms }: Leaving, name: string, fitting: number): Promise<RefusedOpinion | undefined> {
    const { byName } = this.#world;
    const node = byName.get(name);
    if (node === undefined) return undefined;
    const placed = (other: ExplainedPod): ExplainedPod => {
      const nodeName = this.#movedTo.get(other.metadata.uid ?? '');
      return nodeName === undefined ? other : { ...other, spec: { ...other.spec, nodeName } };
    };
    const moved = terms.map((term): JudgedTerm => ({ ...term, matches: term.matches?.map(placed) }));
    const apart = refusedByAffinity(moved, node, (other) => byName.get(other)?.metadata.labels);
    if (apart !== undefined || fitting >= MAX_COMPARED_NODES) return apart;
    const read = await this.#world.podsOn(name);
    if (read === undefined) return undefined;
    const there = [...read, ...(this.#pods.get(name) ?? [])];
    return shortOf(pod, node, there) ?? excludedBy(pod, node, there);
  }

  async #emptiestOf<T extends { readonly node: string }>(equals: readonly T[]): Promise<T | undefined> {
    if (equals.length < 2) return equals[0];
    const counted = await Promise.all(
      equals.map(async (opinion) => {
        const there = (await this.#world.podsOn(opinion.node)) ?? [];
        return { opinion, count: there.length + (this.#pods.get(opinion.node)?.length ?? 0) };
      }),
    );
    return counted.toSorted((a, b) => a.count - b.count)[0]?.opinion;
  }
}

function groupsOf(pod: ExplainedPod, refused: readonly NodeOpinion[], { reported }: World): NodeGroup[] {
  const needs = placementNeedsOf(pod);
  const sized = isExclusive(needs) ? withSizes(needs, refused, reported.hosts) : refused;
  const named = withNetworkMaps(sized, reported.hosts);
  return groupNodes(named).map((group) => withTried(group, needs, reported.hosts));
}
