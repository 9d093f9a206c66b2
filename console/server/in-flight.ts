import { PlumblineError } from '../../model/errors.ts';
import { type PlacementHost, type PlacementNeeds, sharesOn, withAssignments } from '../../model/placement/needs.ts';
import { judgeHost } from '../../model/placement/verdict.ts';
import { labelOf, type ShownPod } from './pods.ts';
import type { Report } from './reports.ts';

/** `[pod, how far it is, the CPUs that the kubelet is expected to give]`; '' where they are not predicted. */
export type InFlight = readonly [pod: string, kind: 'nominated' | 'bound', cpus: string];

/** Pods of one node whose CPUs are predicted; of the others only the names are shown. */
const MOST_PREDICTED = 16;

/**
 * The pods on their way to a node: nominated or bound, and not in its report yet. What the extender has promised and the
 * scheduler has not bound is known to the extender alone.
 * @param coming pods that name the node, oldest first
 */
export function inFlightOn(report: Report | undefined, coming: readonly ShownPod[]): InFlight[] {
  if (coming.length === 0) return [];
  const host = hostOf(report);
  const assumed: PlacementNeeds[] = [];
  return coming.flatMap((pod): InFlight[] => {
    const { needs, kubeletUid, node, cpus } = pod;
    if (cpus === 0) return [];
    if (host && (host.shown.has(kubeletUid) || sharesOn(needs, host))) return [];
    const kind = node === undefined ? 'nominated' : 'bound';
    if (host === undefined || assumed.length === MOST_PREDICTED) return [[labelOf(pod), kind, '']];
    const verdict = judgeHost(needs, host, assumed, 'count-check');
    assumed.push(needs);
    return [[labelOf(pod), kind, verdict.fits ? `${verdict.cpus ?? ''}` : '']];
  });
}

function hostOf(report: Report | undefined): PlacementHost | undefined {
  if (report?.shape === undefined) return undefined;
  try {
    return withAssignments(report.shape.empty, report.assignments);
  } catch (error) {
    if (error instanceof PlumblineError) return undefined;
    throw error;
  }
}
