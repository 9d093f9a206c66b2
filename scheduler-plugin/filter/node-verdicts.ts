import type { MaskRequest } from '../../model/launcher/mask-request.ts';
import type { LeaseState } from '../../model/lease/observer.ts';
import { judgeMask, MASK_FALLS_BACK, maskHostOf, maskNotReported } from '../../model/placement/mask-fit.ts';
import { alignsOrRefuses, type PodInFlight, withoutPods } from '../../model/placement/needs.ts';
import {
  DPU_REFUSAL,
  judgeByCount,
  judgeHost,
  NO_REPORT,
  type NodeVerdict,
  type Refused,
  refuse,
  STALE_REPORT,
  staleRefusal,
  UNCHECKED,
  type UnpredictablePolicy,
  unfitShape,
} from '../../model/placement/verdict.ts';
import { TenantBudget } from '../../runtime/tenant-budget.ts';
import type { ClusterState } from '../cluster/cluster-state.ts';
import { type DpuMonitor, type DpuVerdict, lastRenewalText } from '../cluster/dpu-health.ts';
import { type ClusterNode, type NodeShape, reportsPod, sharesCpusOn } from '../cluster/fleet.ts';
import type { NodeExclusions } from '../cluster/node-exclusions.ts';
import type { PodNeeds } from '../cluster/pod-needs.ts';
import type { ExtenderContext } from '../telemetry/context.ts';

interface PredictionOptions {
  readonly state: Pick<ClusterState, 'fleet' | 'lostPlaces'>;
  readonly unpredictable: UnpredictablePolicy;
}

interface NodeVerdictsOptions extends PredictionOptions, Pick<ExtenderContext, 'nowSeconds'> {
  readonly state: Pick<ClusterState, 'fleet' | 'inFlightOn' | 'lostPlaces'>;
  readonly exclusions: Pick<NodeExclusions, 'refusalOf'>;
  readonly dpuHealth: Pick<DpuMonitor, 'verdict'>;
}

export const UNKNOWN_NODE = refuse('unknown-node', 'node is not known yet');
/** dra-driver-cpu confines every container without a claim to its shared CPUs (pkg/driver/nri_hooks.go). */
const DRA_CPU = refuse('dra-cpu', 'dra.cpu gives exclusive CPUs to claims only');
const QUARANTINED = refuse('quarantined', 'node’s report is quarantined; see its Events');
const NOT_CHECKED = refuse('other', 'not checked in time; will be tried again');

export function plausibleShape({ shape, quarantined }: ClusterNode): NodeShape | undefined {
  return quarantined ? undefined : shape;
}

/** Seconds of exact predictions in a call for so many nodes. A tenant's pod may make each of them expensive. */
export function predictionSeconds(nodes: number): number {
  return 0.025 + nodes * 0.000_05;
}

/** Facts that do not depend on the free CPUs, and the exact prediction. */
export class NodeVerdicts {
  readonly #options: NodeVerdictsOptions;
  readonly #predictions: PredictionCache;
  #predictUntil = Number.POSITIVE_INFINITY;
  #notChecked: string[] = [];

  constructor(options: NodeVerdictsOptions) {
    this.#options = options;
    this.#predictions = new PredictionCache(options);
  }

  /** Makes a call whose exact predictions end after a time that depends on the number of nodes. */
  withinTime<T>(nodes: number, call: () => T): { readonly result: T; readonly notChecked: readonly string[] } {
    this.#predictUntil = this.#options.nowSeconds() + predictionSeconds(nodes);
    this.#notChecked = [];
    try {
      return { result: call(), notChecked: this.#notChecked };
    } finally {
      this.#predictUntil = Number.POSITIVE_INFINITY;
    }
  }

  verdict(needs: PodNeeds, node: ClusterNode | undefined): NodeVerdict {
    if (node === undefined) return UNKNOWN_NODE;
    const refused = this.refusal(needs, node);
    if (refused !== undefined) return refused;
    const shape = needs.exclusive ? plausibleShape(node) : undefined;
    const unfit = shape && unfitShape(needs, shape.empty, this.#options.unpredictable);
    return unfit ?? this.exact(needs, node);
  }

  wouldFit(needs: PodNeeds, name: string): boolean {
    const node = this.#options.state.fleet.get(name);
    return node?.exists === true && this.verdict(needs, node).fits;
  }

  /** Why the node cannot run the pod, apart from its hardware, its configuration and its CPUs. */
  refusal(needs: PodNeeds, node: ClusterNode): Refused | undefined {
    const shape = plausibleShape(node);
    if (!node.exists && shape === undefined) return UNKNOWN_NODE;
    if (needs.dpu && node.dpuHost && node.dpuDead) return dpuRefusal(this.#options.dpuHealth.verdict(node.name));
    if (!needs.exclusive) return this.#maskRefusal(needs, node);
    // Any report proves this, however old it is: a change of the kubelet's policy requires a drained node.
    if (shape !== undefined && sharesCpusOn(node, needs)) return undefined;
    if (node.draCpu) return DRA_CPU;
    if (this.#options.unpredictable === 'refuse' && (shape === undefined || node.stale)) return notReported(node);
    return this.#options.exclusions.refusalOf(node, needs);
  }

  exact(needs: PodNeeds, node: ClusterNode): NodeVerdict {
    if (!needs.exclusive) return this.fallsBack(needs, node) ? MASK_FALLS_BACK : UNCHECKED;
    if (plausibleShape(node) === undefined) return UNCHECKED;
    const assumed = this.#options.state.inFlightOn(node.name, needs.request.uid);
    if (this.#options.nowSeconds() > this.#predictUntil) {
      const verdict = node.stale ? undefined : this.#predictions.find(needs, node, assumed);
      if (verdict !== undefined) return verdict;
      this.#notChecked.push(node.name);
      return NOT_CHECKED;
    }
    if (!node.stale) return this.#predictions.verdict(needs, node, assumed);
    const host = this.#options.state.fleet.host(node);
    if (host === undefined) return UNCHECKED;
    const byLastReport = judgeByCount(needs, host, assumed);
    return byLastReport.fits ? byLastReport : staleRefusal(byLastReport);
  }

  fallsBack({ mask }: PodNeeds, node: ClusterNode): boolean {
    return (
      mask?.fixMismatch === true && node.shape !== undefined && maskVerdict(mask, node.shape, node) === MASK_FALLS_BACK
    );
  }

  /** A mask needs a running agent, so no policy accepts a node without one. */
  #maskRefusal({ mask }: PodNeeds, node: ClusterNode): Refused | undefined {
    if (mask === undefined) return undefined;
    const shape = plausibleShape(node);
    if (shape === undefined || node.stale) return maskNotReported(notReported(node));
    const verdict = maskVerdict(mask, shape, node);
    return verdict.fits ? undefined : verdict;
  }
}

function maskVerdict(request: MaskRequest, { empty }: NodeShape, { owned }: ClusterNode): NodeVerdict {
  return judgeMask(request, maskHostOf({ ...empty, owned }));
}

function notReported({ quarantined, shape }: ClusterNode): Refused {
  if (quarantined) return QUARANTINED;
  return shape === undefined ? NO_REPORT : STALE_REPORT;
}

const WITHOUT_AGE: Readonly<Record<LeaseState, string>> = {
  unknown: 'its state is unknown',
  unproven: 'not seen alive yet',
  dead: 'dead, no lease renewal observed',
  alive: 'not seen alive yet',
};

export function dpuRefusal({ state, age }: DpuVerdict): Refused {
  if (age === undefined) return refuse('dpu', `${DPU_REFUSAL}: ${WITHOUT_AGE[state]}`);
  return refuse('dpu', `${DPU_REFUSAL}: ${state}, ${lastRenewalText(age)}`);
}

const MAX_BYTES = 32 * 1024 * 1024;
/** A pod can be odd enough for a long key. */
const MAX_KEY_CHARACTERS = 16 * 1024;

/**
 * Verdicts of exact predictions, by kind of pod and load of node: equal nodes need one prediction for equal pods.
 *
 * Owner: the namespace of the pod that was predicted first; pods of all namespaces may use it. Age: as long as a node has
 * that load, those pods in flight and those pods that are gone, the verdict is true. End: the namespace needs its room for
 * other verdicts. A namespace has room for as many as are still free for others, so none drops another's. Not kept: with
 * the pod itself in the report.
 */
export class PredictionCache {
  readonly #options: PredictionOptions;
  readonly #verdicts = new Map<string, NodeVerdict>();
  readonly #budget = new TenantBudget(MAX_BYTES);

  constructor(options: PredictionOptions) {
    this.#options = options;
  }

  /** @param inFlight the other pods in flight */
  verdict(needs: PodNeeds, node: ClusterNode, inFlight: readonly PodInFlight[]): NodeVerdict {
    const key = this.#keyOf(needs, node, inFlight);
    const cached = key === undefined ? undefined : this.#verdicts.get(key);
    const verdict = cached ?? this.#predict(needs, node, inFlight);
    if (key !== undefined && cached === undefined) this.#keep(needs.namespace, key, verdict);
    return verdict;
  }

  /** The verdict that needs no prediction. */
  find(needs: PodNeeds, node: ClusterNode, inFlight: readonly PodInFlight[]): NodeVerdict | undefined {
    return this.#verdicts.get(this.#keyOf(needs, node, inFlight) ?? '');
  }

  #keyOf(needs: PodNeeds, node: ClusterNode, inFlight: readonly PodInFlight[]): string | undefined {
    if (reportsPod(node, needs.request.uid)) return undefined;
    const others = inFlight.map(
      ({ key, promised = true, request: { uid } }) => `${promised} ${reportsPod(node, uid)} ${key}`,
    );
    const key = [needs.key, needs.interfaces, node.load, this.#goneText(node), ...others].join('\0');
    return key.length > MAX_KEY_CHARACTERS ? undefined : key;
  }

  /** What the verdict depends on of pods that are in the report and gone: no other node has them. '' for none. */
  #goneText(node: ClusterNode): string {
    if (node.shape === undefined || !alignsOrRefuses(node.shape.empty)) return '';
    const gone = this.#options.state.lostPlaces.goneFrom(node);
    if (gone.size === 0) return '';
    const left = node.assignments.filter(({ podUID }) => gone.has(podUID));
    return left.map(({ podUID, container, cpus }) => `${podUID} ${container} ${cpus}`).join();
  }

  #keep(namespace: string, key: string, verdict: NodeVerdict): void {
    while (!this.#budget.put(namespace, key, { key, verdict })) {
      const oldest = this.#budget.oldestOf(namespace);
      if (oldest === undefined) return;
      this.#budget.delete(namespace, oldest);
      this.#verdicts.delete(oldest);
    }
    this.#verdicts.set(key, verdict);
  }

  #predict(needs: PodNeeds, node: ClusterNode, inFlight: readonly PodInFlight[]): NodeVerdict {
    const { state, unpredictable } = this.#options;
    const host = state.fleet.host(node);
    if (host === undefined) throw new RangeError(`node ${node.name} has no report to predict from`);
    const verdict = judgeHost(needs, host, inFlight, unpredictable);
    if (!verdict.fits || !alignsOrRefuses(host)) return verdict;
    // The kubelet has released the CPUs of these pods, or is about to, and may then give the pod another place.
    const gone = state.lostPlaces.goneFrom(node);
    const after = gone.size === 0 ? verdict : judgeHost(needs, withoutPods(host, gone), inFlight, unpredictable);
    return after.fits ? verdict : after;
  }
}
