import { createHash } from 'node:crypto';
import type { NodeTopologyStatus } from '../../kube/node-topology.ts';
import { type CpuSet, unionOf } from '../../model/cpu-set.ts';
import { assignedCpus } from '../../model/kubelet/report.ts';
import { CoarseFit } from '../../model/placement/coarse.ts';
import { type PlacementHost, type PlacementNeeds, sharesOn, withAssignments } from '../../model/placement/needs.ts';
import { NameIndex, UNKNOWN } from '../wire/name-index.ts';
import { ChangeLog } from './change-log.ts';
import { NodeDomains } from './node-domains.ts';
import { createNodeShapes, type NodeShape } from './node-shapes.ts';

/** The stored part of a report's assignment. */
export interface Assignment {
  readonly podUID: string;
  readonly container: string;
  readonly cpus: string;
}

/**
 * Maximum characters of a load to store as it is; a longer one is stored as a digest, since loads are keys of caches.
 */
const LONGEST_LOAD = 128;

function loadOf({ id }: NodeShape, owned: CpuSet): string {
  const text = `${id} ${owned}`;
  return text.length <= LONGEST_LOAD ? text : createHash('sha256').update(text).digest('base64');
}

/** Facts about a node, as bits. */
export const NodeFlag = {
  /** The API server has a Node of this name. */
  node: 1,
  /** A DPU provides its network. */
  dpuHost: 2,
  /** Its DPU counts as dead. */
  dpuDead: 4,
  /** The dra.cpu driver assigns its CPUs, as the kubelet does. */
  draCpu: 8,
  /** Its agent has been silent for too long. */
  stale: 16,
  /** Its report contradicts its Node, or cannot be parsed. */
  quarantined: 32,
} as const;
type Flag = (typeof NodeFlag)[keyof typeof NodeFlag];

/** Maximum remembered changes. After more changes, a reader checks every node again. */
const CHANGES = 4096;
/** Maximum prepared hosts to keep, so that repeated predictions for a node do not prepare it again. */
const PREPARED = 512;

/**
 * Every node in arrays by its number (see NameIndex). For each node it stores the free CPUs as bits, the CPUs of pods
 * as text, and a reference to the shape that it shares with nodes of the same model.
 */
export class Fleet {
  readonly names = new NameIndex();
  readonly coarse = new CoarseFit();
  readonly domains = new NodeDomains();
  /** The nodes that have changed. */
  readonly changes = new ChangeLog(CHANGES);
  readonly #shapes = createNodeShapes();
  readonly #shape: (NodeShape | undefined)[] = [];
  readonly #assignments: (readonly Assignment[] | undefined)[] = [];
  readonly #loads: string[] = [];
  #assumed = new Uint32Array(256);
  #flags = new Uint8Array(256);
  readonly #prepared = new Map<number, PlacementHost>();

  /** Number of nodes known from the API server or a report. */
  get size(): number {
    return this.names.count;
  }

  /** Numbers of all nodes known from the API server or a report. */
  *ids(): Generator<number> {
    for (let id = 0; id < this.names.size; id++) if (this.names.nameOf(id) !== undefined) yield id;
  }

  /** The name of a node; '' for a number that no node has. */
  nameOf(id: number): string {
    return this.names.nameOf(id) ?? '';
  }

  has(id: number, flag: Flag): boolean {
    return (this.#flags[id]! & flag) !== 0;
  }

  /** Whether the node has no flags other than `node` and `dpuHost`. */
  isPlain(id: number): boolean {
    return (this.#flags[id]! & ~(NodeFlag.node | NodeFlag.dpuHost)) === 0;
  }

  flags(id: number): number {
    return this.#flags[id]!;
  }

  set(name: string, flag: Flag, value: boolean): void {
    const id = value ? this.#add(name) : this.names.find(name);
    if (id === UNKNOWN) return;
    if (value) this.#flags[id]! |= flag;
    else this.#flags[id]! &= ~flag;
    this.changes.add(id);
    if (!value) this.#dropIfUnknown(name, id);
  }

  /** @param text from `domainsText` */
  setDomains(name: string, text: string): void {
    const id = this.names.find(name);
    if (id !== UNKNOWN) this.domains.set(id, text);
  }

  /** The shape of a node that has reported; undefined for any other. */
  shape(id: number): NodeShape | undefined {
    return this.#shape[id];
  }

  /** Whether a pod would run on the node's shared CPUs, where it needs no reservation. */
  sharesOn(id: number, needs: PlacementNeeds): boolean {
    const shape = this.#shape[id];
    return shape !== undefined && sharesOn(needs, shape.empty);
  }

  /** The node's shape and all CPUs that pods own there. Nodes with equal text accept the same pods. */
  load(id: number): string {
    return this.#loads[id] ?? '';
  }

  /** The shape of a node with a valid report: one that exists, is fresh, and does not contradict the Node. */
  trusted(id: number): NodeShape | undefined {
    return this.has(id, NodeFlag.stale) || this.has(id, NodeFlag.quarantined) ? undefined : this.#shape[id];
  }

  /** The CPUs that containers own there, with their pods. */
  assignments(id: number): readonly Assignment[] {
    return this.#assignments[id] ?? [];
  }

  /** The CPUs that containers own there, one set for each container. */
  assigned(id: number): CpuSet[] {
    return assignedCpus(this.#assignments[id] ?? []);
  }

  /** Whether a node's report shows the pod. */
  shows(id: number, uid: string): boolean {
    return this.#assignments[id]?.some(({ podUID }) => podUID === uid) ?? false;
  }

  /** Uids of the pods that a node's report shows. */
  shown(name: string): string[] {
    return (this.#assignments[this.names.find(name)] ?? []).map(({ podUID }) => podUID);
  }

  /** Sets the number of reservations on a node, and the CPUs that they will take. */
  setAssumed(name: string, reservations: number, cpus: number): void {
    const id = reservations > 0 ? this.#add(name) : this.names.find(name);
    if (id === UNKNOWN) return;
    this.changes.add(id);
    this.#assumed[id] = reservations;
    this.coarse.setAssumed(id, cpus);
    if (reservations === 0) this.#dropIfUnknown(name, id);
  }

  assumed(id: number): number {
    return this.#assumed[id] ?? 0;
  }

  /** @throws HostError, ParseError if the report is inconsistent; the node then counts as one without a report */
  setReport(name: string, status: NodeTopologyStatus): void {
    const id = this.#add(name);
    const before = this.#shape[id];
    this.changes.add(id);
    this.#prepared.delete(id);
    const { shape, owned } = this.#take(name, status);
    if (before?.id === shape.id) {
      const { host, reserved } = shape.empty;
      this.coarse.setFree(id, host.online.minus(reserved).minus(owned));
    } else this.coarse.putNode(id, { ...shape.empty, owned });
    if (before) this.#shapes.release(before);
    this.#shape[id] = shape;
    this.#loads[id] = loadOf(shape, owned);
    this.#assignments[id] = status.assignments.map(({ podUID, container, cpus }) => ({ podUID, container, cpus }));
  }

  #take(name: string, status: NodeTopologyStatus): { shape: NodeShape; owned: CpuSet } {
    try {
      const owned = unionOf(assignedCpus(status.assignments));
      return { owned, shape: this.#shapes.take(status) };
    } catch (error) {
      this.removeReport(name);
      throw error;
    }
  }

  removeReport(name: string): void {
    const id = this.names.find(name);
    if (id === UNKNOWN) return;
    this.changes.add(id);
    const shape = this.#shape[id];
    if (shape) this.#shapes.release(shape);
    this.#shape[id] = undefined;
    this.#assignments[id] = undefined;
    this.#loads[id] = '';
    this.#prepared.delete(id);
    this.coarse.clear(id);
    this.#dropIfUnknown(name, id);
  }

  /** The node, prepared for an exact prediction; undefined if it has not reported. */
  host(id: number): PlacementHost | undefined {
    const shape = this.#shape[id];
    if (!shape) return undefined;
    const assignments = this.#assignments[id] ?? [];
    if (assignments.length === 0) return shape.empty;
    let host = this.#prepared.get(id);
    if (host === undefined) {
      host = withAssignments(shape.empty, assignments);
      const [oldest] = this.#prepared.keys();
      if (this.#prepared.size >= PREPARED && oldest !== undefined) this.#prepared.delete(oldest);
      this.#prepared.set(id, host);
    }
    return host;
  }

  #add(name: string): number {
    const id = this.names.add(name);
    if (id >= this.#flags.length) {
      const [flags, assumed] = [new Uint8Array(id * 2), new Uint32Array(id * 2)];
      flags.set(this.#flags);
      assumed.set(this.#assumed);
      [this.#flags, this.#assumed] = [flags, assumed];
    }
    return id;
  }

  /** Frees the number of a name without any remaining facts. */
  #dropIfUnknown(name: string, id: number): void {
    if (this.#flags[id] !== 0 || this.#shape[id] || this.assumed(id) > 0) return;
    this.names.remove(name);
  }
}
