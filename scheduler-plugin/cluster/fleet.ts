import { NodeShapes, type SharedShape } from '../../kube/cluster-view/node-topologies.ts';
import { cpuOwners, type NodeTopologyStatus } from '../../kube/node-topology.ts';
import { CpuSet, unionOf } from '../../model/cpu-set.ts';
import { assignedCpus } from '../../model/kubelet/report.ts';
import { usageOf } from '../../model/kubelet/usage.ts';
import { type FreeCpus, freeCpusOf } from '../../model/placement/coarse.ts';
import {
  type PlacementHost,
  type PlacementNeeds,
  preparedHost,
  sharesOn,
  withAssignments,
} from '../../model/placement/needs.ts';

interface Shape {
  /** The node without pods. */
  readonly empty: PlacementHost;
}
export type NodeShape = SharedShape<Shape>;

export interface Assignment {
  readonly podUID: string;
  readonly container: string;
  readonly cpus: string;
}

export interface ClusterNode {
  readonly name: string;
  readonly exists: boolean;
  readonly dpuHost: boolean;
  readonly dpuDead: boolean;
  /** The dra.cpu driver gives its CPUs to claims. */
  readonly draCpu: boolean;
  readonly stale: boolean;
  readonly agentRenewed: boolean;
  /** Its report contradicts its Node, or cannot be parsed. */
  readonly quarantined: boolean;
  readonly labels: ReadonlyMap<string, string>;
  /** From its report; undefined if it has not reported. */
  readonly shape: NodeShape | undefined;
  readonly assignments: readonly Assignment[];
  readonly owned: CpuSet;
  /** From its report: the devices and memory that pods use there; see `usageOf`. */
  readonly usage: string;
  /** The shape and all owned CPUs, devices and memory. Nodes with equal text accept the same pods. '' without a report. */
  readonly load: string;
  /** By NUMA node. */
  readonly free: readonly FreeCpus[];
  /** Of pods that its report does not contain yet. */
  readonly reservations: number;
  readonly reservedCpus: number;
}

type NodeFlag = 'exists' | 'dpuHost' | 'dpuDead' | 'draCpu' | 'stale' | 'agentRenewed' | 'quarantined';

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

type MutableNode = { -readonly [Field in keyof ClusterNode]: ClusterNode[Field] };

const WITHOUT_REPORT = {
  shape: undefined,
  assignments: [],
  owned: CpuSet.EMPTY,
  usage: '',
  load: '',
  free: [],
} as const;
const UNKNOWN_NODE: Omit<ClusterNode, 'name'> = {
  exists: false,
  dpuHost: false,
  dpuDead: false,
  draCpu: false,
  stale: false,
  agentRenewed: false,
  quarantined: false,
  labels: new Map(),
  ...WITHOUT_REPORT,
  reservations: 0,
  reservedCpus: 0,
};

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
    node.shape = shape;
    node.owned = owned;
    node.usage = usage;
    node.load = `${shape.id} ${owned}${usage}`;
    node.free = freeCpusOf(shape.empty, owned, usage);
    node.assignments = owners.map(({ podUID, container, cpus }) => ({ podUID, container, cpus }));
  }

  removeReport(name: string): void {
    const node = this.#nodes.get(name);
    if (node === undefined) return;
    if (node.shape !== undefined) this.#shapes.release(node.shape);
    Object.assign(node, WITHOUT_REPORT);
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

  #dropIfUnknown({ name, shape, reservations, ...flags }: MutableNode): void {
    const { exists, dpuHost, dpuDead, draCpu, stale, agentRenewed, quarantined } = flags;
    if (exists || dpuHost || dpuDead || draCpu || stale || agentRenewed || quarantined) return;
    if (shape === undefined && reservations === 0) this.#nodes.delete(name);
  }
}
