import { PlumblineError } from '../../model/errors.ts';
import { type PlacementHost, type PlacementNeeds, sharesOn, withAssignments } from '../../model/placement/needs.ts';
import { judgeHost } from '../../model/placement/verdict.ts';
import type { InFlightEntry } from '../data/wire.ts';
import { labelOf, type ShownPod } from './pods.ts';
import type { Report } from './reports.ts';

/** Number of pods on one node whose CPUs are predicted; of others only the names are shown. */
const MOST_PREDICTED = 16;

/**
 * Pods in flight to a node: nominated or bound, and not in its report yet. Only the extender has reservations of pods
 * that the scheduler has not bound.
 * @param coming pods with this node, oldest first
 */
export function inFlightOn(report: Report | undefined, coming: readonly ShownPod[]): InFlightEntry[] {
  if (coming.length === 0) return [];
  const host = hostOf(report);
  const assumed: PlacementNeeds[] = [];
  return coming.flatMap((pod): InFlightEntry[] => {
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
    return withAssignments(report.shape.empty, report.assignments, report.usage);
  } catch (error) {
    if (error instanceof PlumblineError) return undefined;
    throw error;
  }
}
