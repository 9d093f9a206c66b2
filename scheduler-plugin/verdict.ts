import { physnetOfResource, TUNNEL_RESOURCE } from '../model/names.ts';
import { countCheck } from '../model/placement/count-check.ts';
import { cellsOfNetwork, type PlacementHost } from '../model/placement/needs.ts';
import { place } from '../model/placement/place.ts';
import type { Refusal, RefusalReason } from '../model/placement/refusal.ts';
import type { DpuVerdict } from './dpu-health.ts';
import type { PodNeeds } from './pod-needs.ts';

/** Why a node is refused; labels a metric. */
export type RefusalKind = RefusalReason | 'no-report' | 'unpredictable' | 'dpu' | 'no-such-network';

export type NodeVerdict =
  | {
      readonly fits: true;
      /** A whole number from 0 to 10. */
      readonly score: number;
    }
  | {
      readonly fits: false;
      readonly kind: RefusalKind;
      /** Of few distinct values, since the scheduler counts nodes by it. */
      readonly text: string;
      /** Whether other pods' leaving could change it. */
      readonly preemptible: boolean;
    };

/** What is known of a node when it is judged. */
export interface NodeFacts {
  /** Undefined for a node that has not reported. */
  readonly host: PlacementHost | undefined;
  /** Pods that are bound to the node and that its report may not show yet, oldest first. */
  readonly bound: readonly PodNeeds[];
  /** Undefined for a node whose network is on no DPU. */
  readonly dpu: DpuVerdict | undefined;
}

/** What becomes of nodes that cannot be predicted: refused, or passed with the lowest score if the CPUs suffice by count. */
export type UnpredictablePolicy = 'refuse' | 'count-check';

const LOWEST = 0;
const HIGHEST = 10;

/** No pod that leaves makes these true. */
const FOR_GOOD: ReadonlySet<RefusalKind> = new Set([
  'misaligned',
  'no-exclusive-cpus',
  'no-whole-cores',
  'no-report',
  'unpredictable',
  'dpu',
  'no-such-network',
]);

/** Would this node's kubelet take the pod, on CPUs beside its networks, with its DPU alive? */
export function judgeNode(needs: PodNeeds, { host, bound, dpu }: NodeFacts, policy: UnpredictablePolicy): NodeVerdict {
  if (needs.dpu && dpu !== undefined && !dpu.ready) return refuse('dpu', dpuText(dpu));
  if (needs.request.containers.every(({ cpus }) => cpus === 0)) return { fits: true, score: LOWEST };
  if (host === undefined) return unpredicted('no-report', 'node does not report its topology', policy);
  const absent = absentNetwork(needs, host);
  if (absent !== undefined) return refuse('no-such-network', `${absent} is not on the node`);
  const placement = place(needs, host, bound);
  if (placement.outcome === 'unpredictable') {
    const shortage = countCheck(needs, host, bound);
    if (shortage !== undefined) return refusedFor(shortage);
    return unpredicted('unpredictable', `kubelet cannot be predicted: ${placement.reason}`, policy);
  }
  if (placement.outcome === 'refused') return refusedFor(placement.refusal);
  return { fits: true, score: 1 + Math.round(placement.score * (HIGHEST - 1)) };
}

/** The kubelet's own words where they are the same for all nodes of a kind; else the words that name no numbers. */
function refusedFor({ reason, text, short }: Refusal): NodeVerdict {
  return refuse(reason, reason === 'misaligned' ? text : short);
}

/** The kubelet starts a pod even where nobody advertises a resource that it asks for, so this must refuse it. */
function absentNetwork(needs: PodNeeds, { networks }: PlacementHost): string | undefined {
  const absent = needs.networks.find((need) => cellsOfNetwork(networks, need) === undefined);
  if (absent === undefined) return undefined;
  return absent.name === TUNNEL_RESOURCE ? 'the tunnel' : `physnet ${physnetOfResource(absent.name) ?? absent.name}`;
}

function dpuText({ state, age }: DpuVerdict): string {
  if (age === undefined) return 'DPU not ready: not seen alive yet';
  return `DPU not ready: ${state}, last renewal ${Math.round(age)} s ago`;
}

function unpredicted(kind: RefusalKind, text: string, policy: UnpredictablePolicy): NodeVerdict {
  return policy === 'refuse' ? refuse(kind, text) : { fits: true, score: LOWEST };
}

function refuse(kind: RefusalKind, text: string): NodeVerdict {
  return { fits: false, kind, text, preemptible: !FOR_GOOD.has(kind) };
}
