import type { Finding } from '../finding.ts';
import type { OversizedPolicy } from '../launcher/policy.ts';
import { reachFinding } from '../networks/common-cell.ts';
import type { Guest } from '../networks/reach.ts';
import type { ResolvedNetwork } from '../networks/resolve.ts';
import type { ClusterFacts } from './facts.ts';

/**
 * Findings for a guest that no node could ever place near its required networks. A guest that is too large is refused
 * only if every node that it can run on has a report: the size of other nodes is unknown.
 */
export function reachFindings(
  networks: readonly ResolvedNetwork[],
  guest: Guest,
  { candidates, allReport }: Pick<ClusterFacts, 'candidates' | 'allReport'>,
  oversized: OversizedPolicy,
): readonly Finding[] {
  const found = reachFinding(networks, guest, candidates);
  if (found === undefined) return [];
  const isRefused = found.isTooLarge && oversized === 'refuse' && allReport;
  const code = found.isTooLarge ? 'larger-than-cells' : 'out-of-reach';
  return [{ severity: isRefused ? 'error' : 'warning', code, message: found.message }];
}
