import type { MaskRequest } from '../../model/launcher/mask-request.ts';
import type { LeaseState } from '../../model/lease/observer.ts';
import { judgeMask, MASK_FALLS_BACK, maskHostOf, maskNotReported } from '../../model/placement/mask-fit.ts';
import {
  DPU_REFUSAL,
  judgeByCount,
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
import type { ClusterState } from '../cluster/cluster-state.ts';
import { type DpuMonitor, type DpuVerdict, lastRenewalText } from '../cluster/dpu-health.ts';
import { type ClusterNode, type NodeShape, sharesCpusOn } from '../cluster/fleet.ts';
import type { NodeExclusions } from '../cluster/node-exclusions.ts';
import type { PodNeeds } from '../cluster/pod-needs.ts';
import { PredictionCache } from './prediction-cache.ts';

export interface NodeVerdictsOptions {
  readonly state: Pick<ClusterState, 'fleet' | 'inFlightOn' | 'lostPlaces'>;
  readonly exclusions: Pick<NodeExclusions, 'refusalOf'>;
  readonly dpuHealth: Pick<DpuMonitor, 'verdict'>;
  readonly unpredictable: UnpredictablePolicy;
  readonly nowSeconds: () => number;
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
