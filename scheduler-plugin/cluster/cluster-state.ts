import { EventEmitter } from 'node:events';
import type { NodeTopologyStatus, RefusedStart } from '../../kube/node-topology.ts';
import { BoundedMap } from '../../model/bounded-map.ts';
import { lastingCpus } from '../../model/kubelet/pod-request.ts';
import type { PodInFlight } from '../../model/placement/needs.ts';
import { isRefusedAnyway } from '../../model/placement/place.ts';
import { checkReport, faultOfError, type NodeFacts, type ReportFault } from '../../model/report/check.ts';
import type { Reservation, ReservationEnd } from '../../model/reservations/reservation.ts';
import { Reservations } from '../../model/reservations/reservations.ts';
import { Durations } from '../../runtime/problem-log.ts';
import type { ExtenderLogger } from '../telemetry/log-messages.ts';
import { type ClusterNode, Fleet, LostPlaces, reportsPod, sharesCpusOn } from './fleet.ts';
import type { PodNeeds } from './pod-needs.ts';
import type { PodView } from './pod-view.ts';

export interface StateEvents {
  /** A node may now accept pods that it refused before. */
  readonly improved: [node: string];
  /** A pod that was seen without a node was bound to one. */
  readonly bound: [pod: PodView];
  /** The pod is bound, has ended or was deleted. */
  readonly settled: [uid: string];
  /** The scheduler found no node for a pod that an extender may have refused. */
  readonly waiting: [pod: PodView];
  /** A pod is on a node and has not started. Also announced when that pod changes. */
  readonly starting: [pod: PodView];
  /**
   * A pod was predicted to fit on its node, and the kubelet rejected it or the agent refused to start it. Explained: by
   * another pod that was not predicted, and has been bound to the node since.
   */
  readonly rejected: [pod: PodView, isExplained: boolean];
  readonly reservationEnded: [reservation: Reservation<PodNeeds>, end: ReservationEnd];
  /** The labels and conditions that a node should have may have changed. */
  readonly nodeFacts: [node: string];
  /** Undefined: no longer quarantined. */
  readonly quarantined: [node: string, fault: ReportFault | undefined];
}

export interface ObservedNode extends NodeFacts {
  readonly dpuHost: boolean;
  readonly labels?: ReadonlyMap<string, string>;
}

const MAX_CACHED_VERDICTS = 4096;

/** From watches and filter calls. No I/O. */
export class ClusterState extends EventEmitter<StateEvents> {
  readonly fleet: Fleet;
  readonly reservations: Reservations<PodNeeds>;
  readonly hostRefusals = new RefusedStartsByNode();
  readonly lostPlaces: LostPlaces;
  readonly #starting = new Map<string, Map<string, PodView>>();
  readonly #facts = new Map<string, NodeFacts>();
  readonly #faults = new Map<string, ReportFault>();
  readonly #quarantines = new Durations();
  /** By the shape of the node and the key of the pod's needs. */
  readonly #refusedAnyway = new BoundedMap<string, boolean>(MAX_CACHED_VERDICTS);
  readonly #log: ExtenderLogger;

  constructor(log: ExtenderLogger, nearest = false) {
    super();
    this.fleet = new Fleet(nearest);
    this.#log = log;
    this.reservations = new Reservations({
      isShown: (name, uid, pod) => {
        const node = this.fleet.get(name);
        return node !== undefined && (reportsPod(node, uid) || sharesCpusOn(node, pod));
      },
      onAssumed: (node) => this.#assumedChanged(node),
      onEnd: (reservation, end) => this.emit('reservationEnded', reservation, end),
    });
    this.lostPlaces = new LostPlaces(this.fleet, this.reservations);
  }

  /** Pods in flight on a node. @param except the uid of a pod */
  inFlightOn(name: string, except?: string): (PodNeeds & PodInFlight)[] {
    const node = this.fleet.get(name);
    if (node === undefined || node.reservations === 0) return [];
    return this.reservations.assumedOn(name, except).flatMap((reservation) => {
      const { pod } = reservation;
      if (isPromised(reservation, name)) return [pod];
      // Even one that would take CPUs is never a reason to refuse the node.
      return this.#isRefusedAnyway(node, pod) ? [] : [{ ...pod, promised: false }];
    });
  }

  startingOn(node: string): PodView[] {
    return [...(this.#starting.get(node)?.values() ?? [])];
  }

  /** @param synced whether the first list is complete; its pods are not changes */
  podChanged(before: PodView | undefined, after: PodView | undefined, synced: boolean): void {
    // Another pod with the same name has replaced this one.
    if (before && after && before.uid !== after.uid) this.podChanged(before, undefined, synced);
    if (before?.node !== undefined) this.#isNotStarting(before.node, before.uid);
    if (after === undefined) {
      if (before === undefined) return;
      this.reservations.deleted(before.kubeletUid);
      this.emit('settled', before.uid);
      return;
    }
    // Asked before the rejection ends the reservation. The node of a pod that named it itself was not predicted.
    const reservation = this.reservations.of(after.kubeletUid);
    const wasPredicted = reservation !== undefined && isPromised(reservation, after.node ?? '');
    const isExplained = this.reservations.hasUnexpected(after.node ?? '', after.kubeletUid);
    if (after.needs.exclusive) this.reservations.observe({ ...after, uid: after.kubeletUid, pod: after.needs });
    if (after.rejected !== undefined && wasPredicted && synced) this.emit('rejected', after, isExplained);
    if (before !== undefined && before.node === undefined && after.node !== undefined) this.emit('bound', after);
    if (after.terminal || after.node !== undefined || after.deleting) this.emit('settled', after.uid);
    else if (after.mayBeRefused) this.emit('waiting', after);
    this.#mayStart(after);
  }

  get faults(): ReadonlyMap<string, ReportFault> {
    return this.#faults;
  }

  /** @param unreadable why an existing report cannot be parsed */
  reportChanged(node: string, status: NodeTopologyStatus | undefined, unreadable?: Error): void {
    const fault = this.#takeReport(node, status);
    this.#setFault(node, unreadable === undefined ? fault : faultOfError(unreadable));
    this.#takeRefusals(node, fault === undefined ? (status?.refusals ?? []) : []);
    const reported = this.fleet.get(node)?.assignments.map(({ podUID }) => podUID) ?? [];
    this.reservations.reported(node, [...reported, ...this.#sharing(node)]);
    this.#checkLostPlaces(node);
    this.emit('nodeFacts', node);
    this.emit('improved', node);
  }

  nodeChanged(node: string, view: ObservedNode | undefined): void {
    this.fleet.set(node, 'dpuHost', view?.dpuHost ?? false);
    this.fleet.set(node, 'exists', view !== undefined);
    this.fleet.setLabels(node, view?.labels ?? new Map());
    if (view === undefined) this.#facts.delete(node);
    else this.#facts.set(node, { cpus: view.cpus, arch: view.arch, capacity: view.capacity });
    if (this.fleet.get(node)?.shape !== undefined) this.#setFault(node, this.#check(node));
    this.emit('nodeFacts', node);
    if (view) this.emit('improved', node);
  }

  /** A fault affects only that node. */
  #takeReport(node: string, status: NodeTopologyStatus | undefined): ReportFault | undefined {
    try {
      if (status === undefined) this.fleet.removeReport(node);
      else this.fleet.setReport(node, status);
      return status && this.#check(node);
    } catch (error) {
      this.fleet.removeReport(node);
      return faultOfError(error);
    }
  }

  /** Pods with a reservation on a node that gives them no CPUs of their own: reports never contain them. */
  #sharing(name: string): string[] {
    const node = this.fleet.get(name);
    const sharing = this.reservations.assumedOn(name).filter(({ pod }) => node && sharesCpusOn(node, pod));
    return sharing.map(({ uid }) => uid);
  }

  #check(node: string): ReportFault | undefined {
    const empty = this.fleet.get(node)?.shape?.empty;
    return empty && checkReport(empty.host, this.#facts.get(node), empty.devices);
  }

  #setFault(node: string, fault: ReportFault | undefined): void {
    if (this.#faults.get(node)?.message === fault?.message) return;
    this.fleet.set(node, 'quarantined', fault !== undefined);
    if (fault === undefined) {
      this.#faults.delete(node);
      this.#log.info({ node, ...this.#quarantines.end(node) }, 'node report accepted again');
    } else {
      this.#faults.set(node, fault);
      this.#quarantines.begin(node);
      this.#log.warn({ node, code: fault.code, reason: fault.message }, 'node report quarantined');
    }
    this.emit('quarantined', node, fault);
  }

  setFlag(node: string, flag: 'dpuDead' | 'draCpu' | 'stale' | 'agentRenewed', value: boolean): void {
    this.fleet.set(node, flag, value);
    if (flag === 'stale' || flag === 'agentRenewed') this.emit('nodeFacts', node);
    if (!value) this.emit('improved', node);
  }

  #mayStart(pod: PodView): void {
    if (pod.node === undefined || !pod.pending || pod.terminal || pod.deleting) return;
    const starting = this.#starting.get(pod.node) ?? new Map<string, PodView>();
    this.#starting.set(pod.node, starting.set(pod.uid, pod));
    this.emit('starting', pod);
  }

  #isNotStarting(node: string, uid: string): void {
    const starting = this.#starting.get(node);
    // Any tenant can name a node that does not exist.
    if (starting?.delete(uid) && starting.size === 0) this.#starting.delete(node);
  }

  #takeRefusals(node: string, refusals: readonly RefusedStart[]): void {
    const fresh = this.hostRefusals.reported(node, refusals);
    if (fresh.size === 0) return;
    for (const pod of this.startingOn(node)) {
      if (!fresh.has(`${pod.namespace}/${pod.name}`) || this.hostRefusals.of(node, pod) === undefined) continue;
      this.emit('rejected', pod, this.reservations.hasUnexpected(node, pod.kubeletUid));
      this.emit('starting', pod);
    }
  }

  #checkLostPlaces(node: string): void {
    this.lostPlaces.changed(node);
    const podUids = this.lostPlaces.on(node);
    if (podUids.size === 0) return;
    for (const pod of this.startingOn(node)) if (podUids.has(pod.uid)) this.emit('starting', pod);
  }

  #isRefusedAnyway({ shape, quarantined }: ClusterNode, pod: PodNeeds): boolean {
    if (shape === undefined || quarantined) return false;
    return this.#refusedAnyway.getOrCreate(`${shape.id} ${pod.key}`, () => isRefusedAnyway(pod, shape.empty));
  }

  /** CPUs become free when a reservation ends, and on the nodes that it leaves when it is narrowed to one. */
  #assumedChanged(node: string): void {
    const before = this.fleet.get(node)?.reservations ?? 0;
    const assumed = this.reservations.assumedOn(node);
    this.lostPlaces.changed(node);
    const promised = assumed.filter((reservation) => isPromised(reservation, node));
    const cpus = promised.reduce((sum, { pod }) => sum + lastingCpus(pod.request), 0);
    this.fleet.setReservations(node, assumed.length, cpus);
    if (assumed.length < before) this.emit('improved', node);
  }
}

/** Whether the pod was predicted to fit on the node. A pod that named it itself, and a static pod, were not. */
function isPromised({ places }: Reservation<PodNeeds>, node: string): boolean {
  return places.get(node) !== undefined;
}

/** From that node's report only: the author of an image can forge a container's status. */
export class RefusedStartsByNode {
  /** By namespace/name. */
  readonly #reported = new Map<string, ReadonlyMap<string, RefusedStart>>();

  /** @returns the newly refused pods */
  reported(node: string, refusals: readonly RefusedStart[]): ReadonlySet<string> {
    const before = this.#reported.get(node);
    const byName = new Map(refusals.map((refusal) => [`${refusal.namespace}/${refusal.podName}`, refusal]));
    if (byName.size === 0) this.#reported.delete(node);
    else this.#reported.set(node, byName);
    const fresh = [...byName].filter(([name, { podUID }]) => !before?.has(name) || before.get(name)?.podUID !== podUID);
    return new Set(fresh.map(([name]) => name));
  }

  of(node: string, { uid, namespace, name }: Pick<PodView, 'uid' | 'namespace' | 'name'>): string | undefined {
    const refusal = this.#reported.get(node)?.get(`${namespace}/${name}`);
    return refusal === undefined || (refusal.podUID ?? uid) !== uid ? undefined : refusal.message;
  }
}
