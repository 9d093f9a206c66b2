import type { KubeClient } from '../../kube/client.ts';
import { KubeError } from '../../kube/errors.ts';
import { SCHEDULER } from '../../model/names.ts';
import type { SchedulerFacts } from '../../model/vm-state/facts.ts';
import { leaderless, readElection, SCHEDULER_LEASE } from '../extender/election.ts';

/**
 * Plumbline's own scheduler, by its Lease. Empty if the user may not read the Lease.
 * @param now milliseconds since 1970
 * @throws KubeError
 */
export async function readScheduler(client: Pick<KubeClient, 'get'>, now: number): Promise<SchedulerFacts> {
  try {
    const away = leaderless(SCHEDULER, await readElection(client, SCHEDULER_LEASE, now));
    return { leads: away === undefined, away };
  } catch (error) {
    if (error instanceof KubeError && error.status === 403) return {};
    throw error;
  }
}
