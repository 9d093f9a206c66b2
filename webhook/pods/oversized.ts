import type { SelectingSpec } from '../../model/launcher/node-selection.ts';
import { reachFinding } from '../../model/networks/common-cell.ts';
import type { Guest } from '../../model/networks/reach.ts';
import type { ResolvedNetwork } from '../../model/networks/resolve.ts';
import type { ClusterView } from '../cluster/cluster-view.ts';

/** What becomes of a VM that is larger than the NUMA nodes of its networks on every node that it can go to. */
export const OVERSIZED_POLICIES = ['refuse', 'warn'] as const;
export type OversizedPolicy = (typeof OVERSIZED_POLICIES)[number];

export interface Reach {
  readonly warnings: readonly string[];
  /** Why the VM is to be refused. */
  readonly refusal: string | undefined;
}

/**
 * Whether some node could ever bring a guest near its required networks. A guest that is too large is refused only where
 * every node that it can go to has reported: of others it is not known how large they are.
 */
export function reachOf(
  networks: readonly ResolvedNetwork[],
  guest: Guest,
  spec: SelectingSpec,
  { view, oversized }: { readonly view: ClusterView; readonly oversized: OversizedPolicy },
): Reach {
  const found = reachFinding(networks, guest, view.candidates(spec));
  if (found === undefined) return { warnings: [], refusal: undefined };
  const isRefused = found.isTooLarge && oversized === 'refuse' && view.allReport(spec);
  return isRefused ? { warnings: [], refusal: found.message } : { warnings: [found.message], refusal: undefined };
}
