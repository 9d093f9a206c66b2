import { type PlacementHost, type PlacementNeeds, withAssignments } from '../placement/needs.ts';
import { judgeHost, type RefusalKind, type Refused } from '../placement/verdict.ts';

/** Refusals because room is missing: other pods use it, or the node is too small. */
export const FOR_ROOM: readonly RefusalKind[] = ['too-few-whole-cores', 'too-few-cpus', 'resources', 'no-common-node'];

/**
 * Why a node could not hold a pod if it were empty; undefined: it could, or it is something else than room that it lacks.
 * @throws ParseError if a list of the report is no CPU list
 */
export function tooLargeFor(needs: PlacementNeeds, host: PlacementHost): Refused | undefined {
  const verdict = judgeHost(needs, withAssignments(host, []), [], 'count-check');
  return !verdict.fits && FOR_ROOM.includes(verdict.kind) ? verdict : undefined;
}
