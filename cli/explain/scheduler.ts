import type { KubeClient } from '../../kube/client.ts';
import { KubeError } from '../../kube/errors.ts';
import { NAMESPACE, SCHEDULER } from '../../model/names.ts';
import { leaderless, readElection } from '../extender/election.ts';
import type { ExplainedPod } from './objects.ts';

/** Plumbline's own scheduler, by its Lease. */
export interface SchedulerSeen {
  /** Whether a replica leads; undefined: the Lease may not be read. */
  readonly leads: boolean | undefined;
  /** Why none leads. */
  readonly away: string | undefined;
}

export const NOT_SEEN: SchedulerSeen = { leads: undefined, away: undefined };

/** @param now milliseconds since 1970 @throws KubeError */
export async function readScheduler(client: Pick<KubeClient, 'get'>, now: number): Promise<SchedulerSeen> {
  try {
    const away = leaderless(SCHEDULER, await readElection(client, SCHEDULER, now));
    return { leads: away === undefined, away };
  } catch (error) {
    if (error instanceof KubeError && error.status === 403) return NOT_SEEN;
    throw error;
  }
}

export const schedulerOf = ({ spec }: ExplainedPod): string => spec.schedulerName || 'default-scheduler';

/** What keeps a pod of Plumbline's scheduler waiting, whatever the nodes are like; undefined: nothing does. */
export function schedulerAway(pod: ExplainedPod, { away }: SchedulerSeen): { why: string; help: string } | undefined {
  if (schedulerOf(pod) !== SCHEDULER || away === undefined) return undefined;
  const pods = `kubectl -n ${NAMESPACE} get pods -l app.kubernetes.io/name=${SCHEDULER}`;
  return {
    why: `no scheduler looks at it: ${away}`,
    help: `bring ${SCHEDULER} back (plumbline doctor extender; ${pods})`,
  };
}
