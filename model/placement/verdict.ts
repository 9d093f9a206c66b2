import type { CpuSet } from '../cpu-set.ts';
import { few } from '../errors.ts';
import { misalignedText } from '../kubelet/provider.ts';
import { countCheck } from './coarse.ts';
import {
  cellsOfNetwork,
  isPredicted,
  keepsWholeCores,
  type PlacementHost,
  type PlacementNeeds,
  type PodInFlight,
  sharesOn,
  unpredictableFor,
  withAssignments,
} from './needs.ts';
import { unfitForNetworks } from './networks.ts';
import { exclusiveCpus, placeOnFit } from './place.ts';
import { type Refusal, type RefusalReason, refusal, unfitForWholeCores } from './refusal.ts';

/** A metric label. */
export type RefusalKind =
  | RefusalReason
  | 'unknown-node'
  | 'no-report'
  | 'stale-report'
  | 'quarantined'
  | 'unpredictable'
  | 'dpu'
  | 'no-such-network'
  | 'cpu-mask'
  | 'mask-elsewhere'
  | 'dra-cpu'
  | 'refused-on-host'
  | 'refused-by-kubelet'
  | 'other';

export type NodeVerdict =
  | {
      readonly fits: true;
      /** A whole number from 0 to 10. */
      readonly score: number;
      /** CPUs that the kubelet would assign; undefined if that is not predicted. */
      readonly cpus: CpuSet | undefined;
      readonly cells: readonly number[];
      readonly warnings: readonly string[];
    }
  | Refused;

export type Refused = Refusal<RefusalKind>;

/** It identifies a refusal in the text that the scheduler writes into a pod's condition. */
export const DPU_REFUSAL = 'DPU not ready';

/** For unpredictable nodes: `count-check` passes those with enough CPUs by count, with the lowest score. */
export type UnpredictablePolicy = 'refuse' | 'count-check' | 'nearest';

export const LOWEST_SCORE = 0;
const HIGHEST_SCORE = 10;
/** Networks that a refusal names. */
const MAX_ABSENT = 4;
/** Verdicts are cached for each node: warnings in one, and characters of each. */
const MAX_WARNINGS = 8;
const MAX_WARNING_CHARACTERS = 300;

/** `text` has few distinct values, `detail` contains the node's own values. */
export function refuse(kind: RefusalKind, text: string, detail = text): Refused {
  return { fits: false, kind, text, detail };
}

export const NO_REPORT = refuse('no-report', 'node does not report its topology');
export const STALE_REPORT = refuse('stale-report', 'node’s agent has stopped reporting');

/** The verdict of a node that had no room by its last report, before its agent stopped. */
export const staleRefusal = ({ detail }: Refused): Refused =>
  refuse('stale-report', STALE_REPORT.text, `its agent has stopped reporting; by its last report: ${detail}`);

export const UNCHECKED: NodeVerdict = Object.freeze({
  fits: true,
  score: LOWEST_SCORE,
  cpus: undefined,
  cells: [],
  warnings: [],
});

/** @param assumed pods in flight on the node, which its report does not contain yet, oldest first */
export function judgeHost(
  needs: PlacementNeeds,
  host: PlacementHost,
  assumed: readonly PodInFlight[],
  policy: UnpredictablePolicy,
): NodeVerdict {
  return unfitShape(needs, host, policy) ?? judgeFit(needs, host, assumed);
}

/** The same for a node that `unfitShape` does not refuse. */
export function judgeFit(needs: PlacementNeeds, host: PlacementHost, assumed: readonly PodInFlight[]): NodeVerdict {
  if (sharesOn(needs, host)) return UNCHECKED;
  const placement = placeOnFit(needs, host, assumed);
  if ('unpredictable' in placement) {
    const verdict = judgeByCount(needs, host, assumed);
    if (!verdict.fits || 'unpredictable' in host.kubelet) return verdict;
    return { ...verdict, warnings: [`not predicted: ${placement.unpredictable}`] };
  }
  const approximation = 'unpredictable' in host.kubelet ? undefined : host.kubelet.approximation;
  if (!placement.fits) {
    return approximation === undefined ? placement : { ...placement, detail: `${placement.detail} (${approximation})` };
  }
  const warnings = approximation === undefined ? placement.warnings : [approximation, ...placement.warnings];
  return {
    fits: true,
    score: 1 + Math.round(placement.score * (HIGHEST_SCORE - 1)),
    cpus: exclusiveCpus(placement.containers),
    cells: placement.cells,
    warnings: few(warnings, MAX_WARNINGS, MAX_WARNING_CHARACTERS),
  };
}

/** The verdict of a node whose kubelet is not predicted or whose report is old. */
export function judgeByCount(needs: PlacementNeeds, host: PlacementHost, assumed: readonly PodInFlight[]): NodeVerdict {
  if (sharesOn(needs, host)) return UNCHECKED;
  return countCheck(needs, host, assumed) ?? UNCHECKED;
}

/** Whatever runs there. */
export function unfitShape(
  needs: PlacementNeeds,
  host: PlacementHost,
  policy: UnpredictablePolicy,
): Refused | undefined {
  if (sharesOn(needs, host)) return undefined;
  const absent = absentNetworks(needs, host);
  if (absent !== undefined) return refuse('no-such-network', `${absent} not on the node`);
  const unreachable = unfitForNetworks(needs, host);
  if (unreachable) return unreachable;
  const { kubelet } = host;
  const unpredictable = policy === 'refuse' ? unpredictableFor(needs, host) : undefined;
  if (unpredictable !== undefined) return refuse('unpredictable', `kubelet cannot be predicted: ${unpredictable}`);
  if ('unpredictable' in kubelet) return undefined;
  if (!kubelet.cpu) return refusal('no-exclusive-cpus', 'CPU manager policy none');
  const { fullPcpusOnly } = kubelet.cpu.options;
  const split = keepsWholeCores(needs, host) || fullPcpusOnly ? unfitForWholeCores(host) : undefined;
  if (split) return hangs(needs, host) ?? split;
  const { cpusPerCore } = kubelet.topology;
  const odd = fullPcpusOnly && needs.request.containers.find(({ cpus }) => cpus % cpusPerCore !== 0);
  if (!odd) return undefined;
  const text = misalignedText(odd.cpus, cpusPerCore);
  return refuse('misaligned', text, `container ${odd.name}: ${text}`);
}

/** Whether the kubelet would hang even without other pods, which is worse than the split core that causes it. */
function hangs({ request }: PlacementNeeds, node: PlacementHost): Refused | undefined {
  if (!isPredicted(node)) return undefined;
  const admission = node.kubelet.admit(node.state, request);
  if (admission.admitted || admission.reason !== 'KubeletHangs') return undefined;
  return refusal('hangs-kubelet', admission.message);
}

/** The kubelet starts a pod even if no plugin advertises a resource that it requests. */
function absentNetworks(needs: PlacementNeeds, { networks }: PlacementHost): string | undefined {
  const absent = needs.networks.filter(
    (need) => need.affinity === 'required' && cellsOfNetwork(networks, need) === undefined,
  );
  if (absent.length === 0) return undefined;
  const names = absent.map((need) => (need.kind === 'tunnel' ? 'the tunnel' : `physnet ${need.physnet}`));
  return `${few(names, MAX_ABSENT, MAX_WARNING_CHARACTERS).join(', ')} ${names.length === 1 ? 'is' : 'are'}`;
}

export const FOR_ROOM: readonly RefusalKind[] = ['too-few-whole-cores', 'too-few-cpus', 'resources', 'no-common-node'];

/** Even if it were empty; undefined if it lacks something other than room. @throws ParseError */
export function tooLargeFor(needs: PlacementNeeds, host: PlacementHost): Refused | undefined {
  const verdict = judgeHost(needs, withAssignments(host, []), [], 'count-check');
  return !verdict.fits && FOR_ROOM.includes(verdict.kind) ? verdict : undefined;
}
