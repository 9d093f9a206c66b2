import type { NodeTopologyStatus } from '../../kube/node-topology.ts';
import { Breaker } from '../../model/claims/breaker.ts';
import type { Claim, ClaimEnd } from '../../model/claims/claim.ts';
import { Ledger } from '../../model/claims/ledger.ts';
import { PlumblineError } from '../../model/errors.ts';
import { lastingCpus } from '../../model/kubelet/pod-request.ts';
import type { Logger } from '../../runtime/log.ts';
import { Fleet, NodeFlag } from './fleet.ts';
import { HostRefusals } from './host-refusals.ts';
import type { PodNeeds } from './pod-needs.ts';
import type { PodView } from './pod-view.ts';

/** What follows from a change, for those who act on it. Called after the state has changed. */
export interface StateListeners {
  /** A node may take pods now that it refused before. */
  readonly improved: (node: string) => void;
  /** The pod is bound, gone, or has ended. */
  readonly settled: (uid: string) => void;
  /** A pod waits for a node. */
  readonly waiting: (pod: PodView) => void;
  /** A pod is on a node and has not started: changes of it come here too. */
  readonly starting: (pod: PodView) => void;
  /** A kubelet has refused a pod at admission. */
  readonly rejected: (pod: PodView) => void;
  readonly claimEnded: (claim: Claim<PodNeeds>, end: ClaimEnd) => void;
  /** What a node's labels and conditions should be may have changed. */
  readonly nodeFacts: (node: string) => void;
}

export interface NodeView {
  readonly dpuHost: boolean;
}

/** The cluster as this process knows it, fed by watches and filter calls. No I/O. */
export class ClusterState {
  readonly fleet = new Fleet();
  readonly ledger: Ledger<PodNeeds>;
  readonly hostRefusals = new HostRefusals();
  readonly breaker = new Breaker();
  /** Pods on a node that have not started, by node. */
  readonly #starting = new Map<string, Map<string, PodView>>();
  readonly #listeners: StateListeners;
  readonly #log: Logger;

  constructor(listeners: StateListeners, promiseSeconds: number, log: Logger) {
    this.#listeners = listeners;
    this.#log = log;
    this.ledger = new Ledger({
      promiseSeconds,
      isShown: (node, uid) => this.fleet.shows(this.fleet.names.find(node), uid),
      onHeld: (node) => this.#heldChanged(node),
      onEnd: listeners.claimEnded,
    });
  }

  startingOn(node: string): PodView[] {
    return [...(this.#starting.get(node)?.values() ?? [])];
  }

  /** @param synced whether the first list is complete: what it brings is no news */
  podChanged(before: PodView | undefined, after: PodView | undefined, synced: boolean): void {
    const uid = after?.uid ?? before?.uid ?? '';
    // A pod of the same name in another's place.
    if (before && after && before.uid !== after.uid) this.podChanged(before, undefined, synced);
    if (before?.node !== undefined) this.#starting.get(before.node)?.delete(before.uid);
    if (after === undefined) {
      this.ledger.deleted(uid);
      this.#listeners.settled(uid);
      return;
    }
    if (after.needs.exclusive) this.ledger.observe({ ...after, pod: after.needs });
    if (after.rejected !== undefined && before?.rejected === undefined && synced) this.#listeners.rejected(after);
    if (after.terminal || after.node !== undefined || after.deleting) this.#listeners.settled(uid);
    else if (after.unscheduled) this.#listeners.waiting(after);
    if (after.node !== undefined && after.pending && !after.terminal && !after.deleting) this.#isStarting(after);
  }

  reportChanged(node: string, status: NodeTopologyStatus | undefined): void {
    try {
      if (status === undefined) this.fleet.removeReport(node);
      else this.fleet.setReport(node, status);
    } catch (err) {
      if (!(err instanceof PlumblineError)) throw err;
      this.#log.warn({ err, node }, 'passed over a report that contradicts itself');
    }
    this.hostRefusals.reported(node);
    this.ledger.reported(node, this.fleet.shown(node));
    this.#listeners.nodeFacts(node);
    this.#listeners.improved(node);
  }

  nodeChanged(node: string, view: NodeView | undefined): void {
    this.fleet.set(node, NodeFlag.dpuHost, view?.dpuHost ?? false);
    this.fleet.set(node, NodeFlag.node, view !== undefined);
    this.#listeners.nodeFacts(node);
    if (view) this.#listeners.improved(node);
  }

  setFlag(node: string, flag: 'dpuDead' | 'draCpu' | 'stale', value: boolean): void {
    this.fleet.set(node, NodeFlag[flag], value);
    if (!value) this.#listeners.improved(node);
  }

  #isStarting(pod: PodView): void {
    const node = pod.node ?? '';
    const there = this.#starting.get(node) ?? new Map<string, PodView>();
    this.#starting.set(node, there.set(pod.uid, pod));
    if (pod.refusedOnHost !== undefined) this.hostRefusals.add(node, pod.needs.key);
    this.#listeners.starting(pod);
  }

  /** Room comes back when a claim ends, and on the nodes that a claim leaves when it is narrowed to one. */
  #heldChanged(node: string): void {
    const before = this.fleet.held(this.fleet.names.find(node));
    const held = this.ledger.heldOn(node);
    const cpus = held.reduce((sum, { pod }) => sum + lastingCpus(pod.request), 0);
    this.fleet.setHeld(node, held.length, cpus);
    if (held.length < before) this.#listeners.improved(node);
  }
}
