import { type PlacementHost, type PlacementNeeds, withAssignments } from '../placement/needs.ts';
import { judgeHost, type RefusalKind, type Refused } from '../placement/verdict.ts';

/** Refusals because room is missing: other pods use it, or the node is too small. */
export const FOR_ROOM: readonly RefusalKind[] = ['too-few-whole-cores', 'too-few-cpus', 'resources', 'no-common-node'];

/**
 * Why a node could not hold a pod even if it were empty. Undefined if it could, or if it lacks something other than
 * room.
 * @throws ParseError if a list of the report is not a CPU list
 */
export function tooLargeFor(needs: PlacementNeeds, host: PlacementHost): Refused | undefined {
  const verdict = judgeHost(needs, withAssignments(host, []), [], 'count-check');
  return !verdict.fits && FOR_ROOM.includes(verdict.kind) ? verdict : undefined;
}
