import assert from 'node:assert/strict';
import type { Claim, ClaimEnd, Place, PodSight } from '../../../model/claims/claim.ts';
import { Ledger } from '../../../model/claims/ledger.ts';
import { isWholeCores } from '../../../model/host-cores.ts';
import type { Kubelet } from '../../../model/kubelet/kubelet.ts';
import type { HostReport } from '../../../model/kubelet/report.ts';
import type { KubeletState } from '../../../model/kubelet/state.ts';
import { type PlacementHost, type PlacementNeeds, withAssignments } from '../../../model/placement/needs.ts';
import { exclusiveCpus, place } from '../../../model/placement/place.ts';
import { needs, node as nodeOf, physnet } from '../placement/fixtures.ts';

/** What a pod of the world asks for. */
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
  /** Chosen by the scheduler, not bound yet. */
  assumed?: string;
  /** The scheduler has written its choice down before it binds. */
  nominated?: string;
  unscheduled: boolean;
  admitted: boolean;
  ended: boolean;
}

interface WorldNode {
  readonly name: string;
  readonly kubelet: Kubelet;
  /** What the kubelet really has. */
  state: KubeletState;
  /** What the ledger's side last heard of it. */
  heard: PlacementHost;
  /** Reports on their way. */
  readonly reports: HostReport['assignments'][];
}

/**
 * A small cluster: an API server whose watches lag, kubelets that admit when they like, agents that report when they
 * like, and one scheduler that asks the ledger's side for nodes. The only order kept is that of events of one kind.
 */
export class World {
  readonly pods: WorldPod[] = [];
  readonly nodes: WorldNode[];
  readonly ends = new Map<string, ClaimEnd[]>();
  ledger: Ledger<PlacementNeeds>;
  /** Ledgers so far: claims are told apart by theirs. */
  #replicas = 0;
  readonly #events: (() => void)[] = [];
  promised = 0;
  admissions = 0;
  now = 0;

  constructor(names: readonly string[], changes: Partial<HostReport>) {
    this.nodes = names.map((name) => {
      const heard = nodeOf(changes);
      assert.ok(!('unpredictable' in heard.kubelet) && heard.state);
      return { name, kubelet: heard.kubelet, state: heard.state, heard, reports: [] };
    });
    this.ledger = this.#newLedger();
  }

  #newLedger(): Ledger<PlacementNeeds> {
    const replica = ++this.#replicas;
    return new Ledger<PlacementNeeds>({
      promiseSeconds: 60,
      isShown: (name, uid) => this.#node(name).heard.shown.has(uid),
      onEnd: ({ id }: Claim<PlacementNeeds>, end) => {
        const claim = `${replica} ${id}`;
        this.ends.set(claim, [...(this.ends.get(claim) ?? []), end]);
      },
    });
  }

  create(kind: number): void {
    const uid = `pod-${this.pods.length}`;
    const of = KINDS[kind % KINDS.length]!(uid);
    this.pods.push({ uid, needs: of, version: 1, unscheduled: false, admitted: false, ended: false });
    this.#tell(this.pods.at(-1)!);
  }

  /** The scheduler asks about a waiting pod, and takes one of the nodes that are answered, or fails all the same. */
  schedule(which: number, most: number, pick: number, fails: boolean): void {
    const waiting = this.pods.filter(({ node, assumed, ended }) => !node && !assumed && !ended);
    const pod = waiting[which % Math.max(1, waiting.length)];
    if (!pod) return;
    const places = new Map<string, Place>();
    for (let i = 0; i < this.nodes.length && places.size < most; i++) {
      const node = this.nodes[(pick + i) % this.nodes.length]!;
      const held = this.ledger.heldOn(node.name, pod.uid).map((claim) => claim.pod);
      const verdict = place(pod.needs, node.heard, held);
      if (verdict.outcome === 'admitted') {
        places.set(node.name, { cpus: exclusiveCpus(verdict.containers), score: 0 });
      }
    }
    this.ledger.promise(pod.uid, pod.needs, places, String(pod.version), this.now);
    const chosen = [...places.keys()][pick % Math.max(1, places.size)];
    if (chosen !== undefined && !fails) {
      this.promised++;
      pod.assumed = chosen;
      return;
    }
    pod.unscheduled = true;
    this.#tell(pod);
  }

  bind(which: number): void {
    const assumed = this.pods.filter((pod) => pod.assumed !== undefined);
    const pod = assumed[which % Math.max(1, assumed.length)];
    if (!pod) return;
    pod.node = pod.assumed!;
    delete pod.assumed;
    delete pod.nominated;
    pod.unscheduled = false;
    this.#tell(pod);
  }

  nominate(which: number): void {
    const assumed = this.pods.filter((pod) => pod.assumed !== undefined && pod.nominated === undefined);
    const pod = assumed[which % Math.max(1, assumed.length)];
    if (!pod) return;
    pod.nominated = pod.assumed!;
    this.#tell(pod);
  }

  /** The binding of a pod that was nominated fails, and the scheduler takes the nomination back. */
  fail(which: number): void {
    const nominated = this.pods.filter((pod) => pod.nominated !== undefined);
    const pod = nominated[which % Math.max(1, nominated.length)];
    if (!pod) return;
    delete pod.nominated;
    delete pod.assumed;
    pod.unscheduled = true;
    this.#tell(pod);
  }

  /**
   * Another replica takes over, with what the API server and the reports that were heard say. A pod in the scheduler's
   * hands that is written down nowhere would be unknown to it; takeover waits longer than such a pod is there.
   */
  takeOver(): void {
    if (this.pods.some(({ assumed, nominated }) => assumed !== undefined && nominated === undefined)) return;
    this.#events.length = 0;
    this.ledger = this.#newLedger();
    for (const { name, heard } of this.nodes) this.ledger.reported(name, heard.shown);
    for (const pod of this.pods) if (!pod.ended) this.ledger.observe(this.#sightOf(pod));
  }

  /** A kubelet admits one of its pods: it has to fit, on CPUs that suit it. */
  admit(which: number): void {
    const bound = this.pods.filter(({ node, admitted, ended }) => node && !admitted && !ended);
    const pod = bound[which % Math.max(1, bound.length)];
    if (!pod) return;
    const node = this.#node(pod.node!);
    const admission = node.kubelet.admit(node.state, pod.needs.request);
    assert.ok(admission.admitted, `${pod.uid} was promised room on ${node.name}: ${JSON.stringify(admission)}`);
    const cpus = exclusiveCpus(admission.containers);
    if (pod.needs.wholeCores) assert.ok(isWholeCores(node.heard.host, cpus), `${pod.uid}: ${cpus}`);
    node.state = admission.state;
    pod.admitted = true;
    this.admissions++;
  }

  report(which: number): void {
    const node = this.nodes[which % this.nodes.length]!;
    node.reports.push(
      [...node.state.assignments].flatMap(([podUID, containers]) =>
        [...containers].map(([container, cpus]) => ({ podUID, container, cpus: cpus.toString() })),
      ),
    );
  }

  hearReport(which: number): void {
    const node = this.nodes[which % this.nodes.length]!;
    const assignments = node.reports.shift();
    if (!assignments) return;
    node.heard = withAssignments(node.heard, assignments);
    this.ledger.reported(node.name, node.heard.shown);
  }

  hearPod(): void {
    this.#events.shift()?.();
  }

  /**
   * A pod ends: running or waiting, but not in the scheduler's hands.
   *
   * Where the kubelet aligns, more room can be worse: a pod in flight is then put on the NUMA node that came free, and
   * another that was to be there fits nowhere. Nobody can promise against that, so there only pods leave whose node has
   * none in flight, and the node's report says so at once.
   */
  end(which: number): void {
    const aligns = this.nodes[0]!.heard.alignment !== 'none' && this.nodes[0]!.heard.alignment !== 'best-effort';
    const inFlight = new Set(
      this.pods
        .filter(({ admitted, ended }) => !admitted && !ended)
        .flatMap(({ node, assumed }) => node ?? assumed ?? []),
    );
    const able = this.pods.filter(
      ({ ended, assumed, node, admitted }) =>
        !ended && !assumed && !(aligns && node !== undefined && (!admitted || inFlight.has(node))),
    );
    const pod = able[which % Math.max(1, able.length)];
    if (!pod) return;
    pod.ended = true;
    if (pod.node) {
      const node = this.#node(pod.node);
      node.state = node.kubelet.remove(node.state, pod.uid);
      if (aligns) this.#reportNow(this.nodes.indexOf(node));
    }
    this.#events.push(() => this.ledger.deleted(pod.uid));
  }

  /**
   * So much time passes that promises end: never while the scheduler has a pod in hand, nor so that a binding is still
   * on its way.
   */
  wait(): void {
    if (this.pods.some(({ assumed }) => assumed !== undefined)) return;
    while (this.#events.length > 0) this.hearPod();
    this.now += 61;
    this.ledger.expire(this.now);
  }

  /** Everything arrives. */
  settle(): void {
    while (this.#events.length > 0) this.hearPod();
    for (let i = 0; i < this.nodes.length; i++) this.#reportNow(i);
  }

  #reportNow(node: number): void {
    this.report(node);
    while (this.nodes[node]!.reports.length > 0) this.hearReport(node);
  }

  #node(name: string): WorldNode {
    return this.nodes.find((node) => node.name === name)!;
  }

  #tell(pod: WorldPod): void {
    pod.version++;
    const sight = this.#sightOf(pod);
    this.#events.push(() => this.ledger.observe(sight));
  }

  #sightOf({ uid, version, node, nominated, unscheduled, needs: of }: WorldPod): PodSight<PlacementNeeds> {
    return { uid, version: String(version), node, nominated, unscheduled, terminal: false, pod: of };
  }
}
