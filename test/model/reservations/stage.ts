import assert from 'node:assert/strict';
import { isWholeCores } from '../../../model/host.ts';
import type { HostReport } from '../../../model/kubelet/host-report.ts';
import type { Kubelet } from '../../../model/kubelet/kubelet.ts';
import type { KubeletState } from '../../../model/kubelet/state.ts';
import {
  alignsOrRefuses,
  type PlacementHost,
  type PlacementNeeds,
  withAssignments,
  withoutPods,
} from '../../../model/placement/needs.ts';
import { exclusiveCpus, lostPlaces } from '../../../model/placement/place.ts';
import { judgeHost } from '../../../model/placement/verdict.ts';
import {
  DEFAULT_RESERVATION_SECONDS,
  type Place,
  type PodObservation,
  type Reservation,
  type ReservationEnd,
  reservationSeconds,
} from '../../../model/reservations/reservation.ts';
import { Reservations } from '../../../model/reservations/reservations.ts';
import { needs, node as nodeOf, physnet } from '../placement/fixture.ts';

/** The requirements of a pod of the world. */
export const KINDS: readonly ((uid: string) => PlacementNeeds)[] = [
  (uid) => needs(uid, 2),
  (uid) => needs(uid, 4),
  (uid) => needs(uid, 6, [], { wholeCores: true }),
  (uid) => needs(uid, 2, [physnet('east')]),
  (uid) => needs(uid, 4, [physnet('west')]),
];

interface WorldPod {
  readonly uid: string;
  readonly needs: PlacementNeeds;
  version: number;
  node?: string;
  /** Its volumes must be ready before it is bound. */
  readonly slow: boolean;
  /** In the scheduler: chosen, not bound yet. */
  assumed?: string;
  /** Since when the scheduler has it. */
  assumedAt: number;
  /** Pods whose end was shown by the report that was the basis of its promise. */
  endsBefore: number;
  /** The scheduler records its choice before it binds. */
  nominated?: string;
  dropped: boolean;
  admitted: boolean;
  ended: boolean;
}

interface WorldNode {
  readonly name: string;
  readonly kubelet: Kubelet;
  /** The actual state of the kubelet. */
  state: KubeletState;
  /** The last report that the ledger has. */
  heard: PlacementHost;
  /** Pods that have ended there. */
  ends: number;
  /** Those of them whose end the last report shows. */
  heardEnds: number;
  /** Reports in transit. */
  readonly reports: { readonly assignments: HostReport['assignments']; readonly ends: number }[];
}

/** Seconds after which the scheduler has bound a pod that waits for nothing, including the delay of the watch. */
const BINDING = 50;
/** Seconds after which it stops waiting for volumes (VolumeBindingArgs.bindTimeoutSeconds). */
const VOLUMES = 600;

/**
 * A small cluster: an API server with lagging watches, kubelets and agents that admit and report at any time, and one
 * scheduler that asks the ledger for nodes. Only events of the same kind are ordered.
 */
export class World {
  readonly pods: WorldPod[] = [];
  readonly nodes: WorldNode[];
  readonly ends = new Map<string, ReservationEnd[]>();
  reservations: Reservations<PlacementNeeds>;
  /** Ledgers so far: the number of the ledger identifies a claim. */
  #replicas = 0;
  readonly #events: (() => void)[] = [];
  promised = 0;
  admissions = 0;
  /** Pods that a kubelet refused because another pod ended there after their promise. */
  refused = 0;
  /** Pods that were evicted before their kubelet could refuse them. */
  evicted = 0;
  readonly #aligns: boolean;
  now = 0;

  constructor(names: readonly string[], changes: Partial<HostReport>) {
    this.nodes = names.map((name) => {
      const heard = nodeOf(changes);
      assert.ok(!('unpredictable' in heard.kubelet) && heard.state);
      return { name, kubelet: heard.kubelet, state: heard.state, heard, ends: 0, heardEnds: 0, reports: [] };
    });
    this.#aligns = alignsOrRefuses(this.nodes[0]!.heard);
    this.reservations = this.#newLedger();
  }

  #newLedger(): Reservations<PlacementNeeds> {
    const replica = ++this.#replicas;
    return new Reservations<PlacementNeeds>({
      isShown: (name, uid) => this.#node(name).heard.owners.has(uid),
      onEnd: ({ id }: Reservation<PlacementNeeds>, end) => {
        const reservation = `${replica} ${id}`;
        this.ends.set(reservation, [...(this.ends.get(reservation) ?? []), end]);
      },
    });
  }

  create(kind: number): void {
    const uid = `pod-${this.pods.length}`;
    const of = KINDS[kind % KINDS.length]!(uid);
    const slow = kind % 2 === 1;
    const state = { version: 1, assumedAt: 0, endsBefore: 0, dropped: false, admitted: false, ended: false };
    this.pods.push({ uid, needs: of, slow, ...state });
    this.#tell(this.pods.at(-1)!);
  }

  /** The scheduler asks about a waiting pod, and takes one of the returned nodes or fails anyway. */
  schedule(which: number, most: number, pick: number, fails: boolean): void {
    const pod = this.#pick(which, ({ node, assumed, ended }) => !node && !assumed && !ended);
    if (!pod) return;
    const places = new Map<string, Place>();
    for (let i = 0; i < this.nodes.length && places.size < most; i++) {
      const node = this.nodes[(pick + i) % this.nodes.length]!;
      const held = this.reservations.assumedOn(node.name, pod.uid).map((reservation) => reservation.pod);
      const verdict = judgeHost(pod.needs, node.heard, held, 'refuse');
      const after = alignsOrRefuses(node.heard) ? withoutPods(node.heard, this.#goneFrom(node)) : node.heard;
      if (verdict.fits && judgeHost(pod.needs, after, held, 'refuse').fits)
        places.set(node.name, { cpus: verdict.cpus, score: 0 });
    }
    const expires = this.now + reservationSeconds(pod.slow, DEFAULT_RESERVATION_SECONDS);
    const made = { namespace: 'default', uid: pod.uid, pod: pod.needs, version: String(pod.version) };
    this.reservations.reserve({ ...made, places, expires });
    const chosen = [...places.keys()][pick % Math.max(1, places.size)];
    if (chosen !== undefined && !fails) {
      this.promised++;
      pod.assumed = chosen;
      pod.assumedAt = this.now;
      pod.endsBefore = this.#node(chosen).heardEnds;
      return;
    }
    this.#giveUp(pod);
  }

  bind(which: number): void {
    const pod = this.#pick(which, ({ assumed }) => assumed !== undefined);
    if (pod) this.#bind(pod);
  }

  nominate(which: number): void {
    const pod = this.#pick(which, ({ assumed, nominated }) => assumed !== undefined && nominated === undefined);
    if (!pod) return;
    pod.nominated = pod.assumed!;
    this.#tell(pod);
  }

  /** The binding of a pod fails, and the scheduler withdraws the nomination if it wrote one. */
  fail(which: number): void {
    const pod = this.#pick(which, ({ assumed }) => assumed !== undefined);
    if (pod) this.#giveUp(pod);
  }

  #pick(which: number, isMeant: (pod: WorldPod) => boolean): WorldPod | undefined {
    const pods = this.pods.filter(isMeant);
    return pods[which % Math.max(1, pods.length)];
  }

  /** The scheduler restarts: it forgets its pods and writes nothing about them. */
  restartScheduler(): void {
    for (const pod of this.pods) delete pod.assumed;
  }

  /**
   * Another replica takes over with its own kube-scheduler, the state of the API server and the received reports. This
   * takes longer than the binding of a pod that waits for nothing. The last kube-scheduler binds no other pod any more.
   */
  takeOver(): void {
    for (const pod of this.pods) {
      if (pod.assumed !== undefined && !pod.slow) this.#bind(pod);
      else delete pod.assumed;
    }
    this.#events.length = 0;
    this.reservations = this.#newLedger();
    for (const { name, heard } of this.nodes) this.reservations.reported(name, heard.owners);
    for (const pod of this.pods) {
      if (pod.ended) this.reservations.deleted(pod.uid);
      else this.reservations.observe(this.#sightOf(pod));
    }
  }

  /** A kubelet admits one of its pods, which must fit on suitable CPUs. */
  admit(which: number): void {
    const pod = this.#pick(which, ({ node, admitted, ended }) => node !== undefined && !admitted && !ended);
    if (!pod) return;
    const node = this.#node(pod.node!);
    const admission = node.kubelet.admit(node.state, pod.needs.request);
    if (!admission.admitted && this.#aligns && node.ends > pod.endsBefore) {
      this.refused++;
      this.#end(pod);
      return;
    }
    assert.ok(admission.admitted, `${pod.uid} was promised room on ${node.name}: ${JSON.stringify(admission)}`);
    const cpus = exclusiveCpus(admission.containers);
    if (pod.needs.wholeCores) assert.ok(isWholeCores(node.heard.host, cpus), `${pod.uid}: ${cpus}`);
    node.state = admission.state;
    pod.admitted = true;
    this.admissions++;
  }

  report(which: number): void {
    const node = this.nodes[which % this.nodes.length]!;
    const assignments = [...node.state.assignments].flatMap(([podUID, containers]) =>
      [...containers].map(([container, cpus]) => ({ podUID, container, cpus: `${cpus}` })),
    );
    node.reports.push({ assignments, ends: node.ends });
  }

  hearReport(which: number): void {
    const node = this.nodes[which % this.nodes.length]!;
    const report = node.reports.shift();
    if (!report) return;
    node.heard = withAssignments(node.heard, report.assignments);
    node.heardEnds = report.ends;
    this.reservations.reported(node.name, node.heard.owners);
    this.#evictLost();
  }

  hearPod(): void {
    this.#events.shift()?.();
    this.#evictLost();
  }

  /**
   * A pod ends, whatever its state: the scheduler cannot bind a deleted pod. If the kubelet aligns, more room can be
   * worse: a pod in flight then gets the NUMA node that became free, and another pod for that node fits nowhere.
   */
  end(which: number): void {
    const pod = this.#pick(which, ({ ended }) => !ended);
    if (!pod) return;
    this.#end(pod);
    if (pod.node !== undefined && which % 2 === 0) this.#reportNow(this.nodes.indexOf(this.#node(pod.node)));
  }

  #end(pod: WorldPod): void {
    pod.ended = true;
    delete pod.assumed;
    if (pod.node) {
      const node = this.#node(pod.node);
      if (pod.admitted) node.ends++;
      node.state = node.kubelet.remove(node.state, pod.uid);
    }
    this.#events.push(() => this.reservations.deleted(pod.uid));
  }

  /** The extender evicts pods that have lost their place, as far as it knows. */
  #evictLost(): void {
    for (const node of this.nodes) {
      const { name, heard } = node;
      const assumed = this.reservations.assumedOn(name);
      const bound = assumed.filter(({ kind, places }) => kind === 'bound' && places.get(name)?.cpus);
      const needsInOrder = bound.map(({ pod }) => pod);
      for (const uid of lostPlaces(heard, needsInOrder, this.#goneFrom(node))) {
        const pod = this.pods.find((pod) => pod.uid === uid)!;
        if (pod.ended || pod.admitted) continue;
        this.evicted++;
        this.#end(pod);
      }
    }
  }

  /** Deletes every pod without a node. */
  giveUpWaiting(): void {
    for (const pod of this.pods) if (!pod.node && !pod.ended) this.#end(pod);
  }

  /** Time passes: the scheduler binds its pods or stops trying within its limits, and the watch delivers. */
  wait(seconds: number): void {
    for (const pod of this.pods) {
      if (pod.assumed === undefined) continue;
      const limit = pod.assumedAt + BINDING + (pod.slow ? VOLUMES : 0);
      if (limit > this.now + seconds) continue;
      if (pod.version % 2 === 0) this.#bind(pod);
      else this.#giveUp(pod);
    }
    while (this.#events.length > 0) this.hearPod();
    this.now += seconds;
    this.reservations.expire(this.now);
  }

  /** Delivers everything. */
  settle(): void {
    while (this.#events.length > 0) this.hearPod();
    for (let i = 0; i < this.nodes.length; i++) this.#reportNow(i);
  }

  #goneFrom({ name, heard }: WorldNode): ReadonlySet<string> {
    return new Set([...heard.owners].filter((uid) => !this.reservations.isBoundTo(uid, name)));
  }

  #reportNow(node: number): void {
    this.report(node);
    while (this.nodes[node]!.reports.length > 0) this.hearReport(node);
  }

  #bind(pod: WorldPod): void {
    pod.node = pod.assumed!;
    delete pod.assumed;
    delete pod.nominated;
    pod.dropped = false;
    this.#tell(pod);
  }

  #giveUp(pod: WorldPod): void {
    delete pod.assumed;
    delete pod.nominated;
    pod.dropped = true;
    this.#tell(pod);
  }

  #node(name: string): WorldNode {
    return this.nodes.find((node) => node.name === name)!;
  }

  #tell(pod: WorldPod): void {
    pod.version++;
    const sight = this.#sightOf(pod);
    this.#events.push(() => this.reservations.observe(sight));
  }

  #sightOf({ uid, version, node, nominated, dropped, needs: of }: WorldPod): PodObservation<PlacementNeeds> {
    return { uid, version: String(version), node, nominated, dropped, terminal: false, pod: of };
  }
}
