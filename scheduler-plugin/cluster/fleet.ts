import { isDeepStrictEqual } from 'node:util';
import { NodeShapes, type SharedShape } from '../../kube/cluster-view/node-topologies.ts';
import { cpuOwners, type NodeTopologyStatus } from '../../kube/node-topology.ts';
import { CpuSet, unionOf } from '../../model/cpu-set.ts';
import { assignedCpus } from '../../model/kubelet/report.ts';
import { usageOf } from '../../model/kubelet/usage.ts';
import { type FreeCpus, freeCpusOf } from '../../model/placement/coarse.ts';
import {
  alignsOrRefuses,
  type PlacementHost,
  type PlacementNeeds,
  preparedHost,
  type ReportedAssignments,
  sharesOn,
  withAssignments,
} from '../../model/placement/needs.ts';
import { lostPlaces } from '../../model/placement/place.ts';
import type { Reservations } from '../../model/reservations/reservations.ts';
import type { PodNeeds } from './pod-needs.ts';

/** `empty` is the node without pods. */
type Shape = Readonly<{ empty: PlacementHost }>;
export type NodeShape = SharedShape<Shape>;

const NO_FLAGS = {
  exists: false,
  dpuHost: false,
  dpuDead: false,
  /** The dra.cpu driver gives its CPUs to claims. */
  draCpu: false,
  stale: false,
  agentRenewed: false,
  /** Its report contradicts its Node, or cannot be parsed. */
  quarantined: false,
};
type NodeFlag = keyof typeof NO_FLAGS;
const FLAGS = Object.keys(NO_FLAGS) as NodeFlag[];

const NO_REPORT = {
  shape: undefined as NodeShape | undefined,
  assignments: [] as ReportedAssignments,
  owned: CpuSet.EMPTY,
  /** The devices and memory that pods use there; see `usageOf`. */
  usage: '',
  /** The shape and all owned CPUs, devices and memory. Nodes with equal text accept the same pods. */
  load: '',
  /** By NUMA node. */
  free: [] as readonly FreeCpus[],
};

const UNKNOWN_NODE = {
  ...NO_FLAGS,
  labels: new Map() as ReadonlyMap<string, string>,
  ...NO_REPORT,
  /** Of pods that its report does not contain yet. */
  reservations: 0,
  reservedCpus: 0,
};
type MutableNode = typeof UNKNOWN_NODE & { readonly name: string };
export type ClusterNode = Readonly<MutableNode>;

/** Of a node that exists, is fresh, and does not contradict its Node. */
export function trustedShape({ shape, stale, quarantined }: ClusterNode): NodeShape | undefined {
  return stale || quarantined ? undefined : shape;
}

/** Whether a pod would run on the node's shared CPUs, where it needs no reservation. */
export function sharesCpusOn({ shape }: Pick<ClusterNode, 'shape'>, needs: PlacementNeeds): boolean {
  return shape !== undefined && sharesOn(needs, shape.empty);
}

export function reportsPod({ assignments }: ClusterNode, uid: string): boolean {
  return assignments.some(({ podUID }) => podUID === uid);
}

/** By its name, from the API server, a report, a flag or a reservation. */
export class Fleet {
  readonly #nodes = new Map<string, MutableNode>();
  readonly #shapes: NodeShapes<Shape>;

  constructor(nearest = false) {
    this.#shapes = new NodeShapes((withoutPods) => ({ empty: preparedHost(withoutPods, nearest) }));
  }

  get size(): number {
    return this.#nodes.size;
  }

  get(name: string): ClusterNode | undefined {
    return this.#nodes.get(name);
  }

  nodes(): IterableIterator<ClusterNode> {
    return this.#nodes.values();
  }

  set(name: string, flag: NodeFlag, value: boolean): void {
    const node = this.#add(name);
    node[flag] = value;
    this.#dropIfUnknown(node);
  }

  setLabels(name: string, labels: ReadonlyMap<string, string>): void {
    const node = this.#nodes.get(name);
    if (node !== undefined) node.labels = labels;
  }

  setReservations(name: string, reservations: number, cpus: number): void {
    const node = this.#add(name);
    node.reservations = reservations;
    node.reservedCpus = cpus;
    this.#dropIfUnknown(node);
  }

  /** @throws HostError, ParseError if the report is inconsistent; the node then keeps its last report */
  setReport(name: string, status: NodeTopologyStatus): void {
    const owners = cpuOwners(status);
    const owned = unionOf(assignedCpus(owners));
    const usage = usageOf(status);
    const shape = this.#shapes.take(status);
    const node = this.#add(name);
    if (node.shape !== undefined) this.#shapes.release(node.shape);
    const assignments = owners.map(({ podUID, container, cpus }) => ({ podUID, container, cpus }));
    const load = `${shape.id} ${owned}${usage}`;
    const free = freeCpusOf(shape.empty, owned, usage);
    Object.assign(node, { shape, assignments, owned, usage, load, free } satisfies typeof NO_REPORT);
  }

  removeReport(name: string): void {
    const node = this.#nodes.get(name);
    if (node === undefined) return;
    if (node.shape !== undefined) this.#shapes.release(node.shape);
    Object.assign(node, NO_REPORT);
    this.#dropIfUnknown(node);
  }

  /** Undefined if it has not reported. */
  host({ shape, assignments, usage }: ClusterNode): PlacementHost | undefined {
    if (shape === undefined || (assignments.length === 0 && usage === '')) return shape?.empty;
    return withAssignments(shape.empty, assignments, usage);
  }

  #add(name: string): MutableNode {
    const node = this.#nodes.get(name) ?? { name, ...UNKNOWN_NODE };
    this.#nodes.set(name, node);
    return node;
  }

  #dropIfUnknown(node: MutableNode): void {
    const isNeeded = node.shape !== undefined || node.reservations > 0 || FLAGS.some((flag) => node[flag]);
    if (!isNeeded) this.#nodes.delete(node.name);
  }
}

const NO_PODS: ReadonlySet<string> = new Set();

/**
 * Bound pods that lost the place they were promised, by node. Owner: the extender. End of what is cached: the node's
 * report or its reservations change, or the API server reports that a pod is gone that the report still contains.
 */
export class LostPlaces {
  readonly #fleet: Fleet;
  readonly #reservations: Reservations<PodNeeds>;
  readonly #results = new Map<string, { readonly gone: ReadonlySet<string>; readonly lost: ReadonlySet<string> }>();

  constructor(fleet: Fleet, reservations: Reservations<PodNeeds>) {
    this.#fleet = fleet;
    this.#reservations = reservations;
  }

  changed(node: string): void {
    this.#results.delete(node);
  }

  on(name: string): ReadonlySet<string> {
    const node = this.#fleet.get(name);
    if (node === undefined || node.reservations === 0) return NO_PODS;
    const shape = trustedShape(node);
    // Checked before the host is prepared with its pods, which is most of the work.
    if (shape === undefined || !alignsOrRefuses(shape.empty)) return NO_PODS;
    const gone = this.goneFrom(node);
    const cached = this.#results.get(name);
    if (cached !== undefined && isDeepStrictEqual(cached.gone, gone)) return cached.lost;
    const lost = this.#compute(node, gone);
    this.#results.set(name, { gone, lost });
    return lost;
  }

  /** According to the API server. */
  goneFrom({ name, assignments }: ClusterNode): ReadonlySet<string> {
    const gone = assignments.filter(({ podUID }) => !this.#reservations.isBoundTo(podUID, name));
    return gone.length === 0 ? NO_PODS : new Set(gone.map(({ podUID }) => podUID));
  }

  #compute(node: ClusterNode, gone: ReadonlySet<string>): ReadonlySet<string> {
    // A reservation that was found bound, such as a static pod's, was never checked against the others.
    const predicted = this.#reservations
      .assumedOn(node.name)
      .filter(({ kind, places }) => kind === 'bound' && places.get(node.name)?.cpus !== undefined);
    const host = predicted.length === 0 ? undefined : this.#fleet.host(node);
    const needs = predicted.map(({ pod }) => pod);
    return host === undefined ? NO_PODS : lostPlaces(host, needs, gone);
  }
}
