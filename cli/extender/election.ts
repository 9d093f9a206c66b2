import type { SchedulerFacts } from '../../diagnosis/facts.ts';
import type { KubeClient } from '../../kube/client.ts';
import { lease } from '../../kube/resources.ts';
import { NAMESPACE, SCHEDULER } from '../../model/names.ts';
import { readOne, undefinedIfForbidden } from '../support/lists.ts';

/** Holders renew every 1 or 2 s; the rest is a margin for different clocks. */
const OVERDUE_SECONDS = 60;

/** The Lease of Plumbline's own kube-schedulers. */
export const SCHEDULER_LEASE = { namespace: NAMESPACE, lease: SCHEDULER } as const;

/** The leader, from a Lease. */
export interface Election {
  /** Host name of the leader, which is the name of its pod or node; undefined: the Lease is released. */
  readonly leader: string | undefined;
  /** Seconds since the last renewal, by this machine's clock; undefined: never renewed. */
  readonly age: number | undefined;
}

const HOST_NAME = /^[a-z0-9](?:[-.a-z0-9]{0,251}[a-z0-9])?$/;

/**
 * Reads an election.
 * @param now milliseconds since 1970
 * @returns undefined if the Lease does not exist
 * @throws KubeError
 */
export async function readElection(
  client: Pick<KubeClient, 'get'>,
  { namespace, lease: name }: { readonly namespace: string; readonly lease: string },
  now: number,
): Promise<Election | undefined> {
  const path = `/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases/${name}`;
  const object = await readOne(client, path, lease);
  if (object === undefined) return undefined;
  const { spec } = object;
  // The identity of a holder is `<host name>_<random>`.
  const holder = spec?.holderIdentity ?? '';
  const host = holder.slice(0, Math.max(0, holder.lastIndexOf('_')));
  const renewed = Date.parse(spec?.renewTime ?? '');
  return {
    leader: HOST_NAME.test(host) ? host : undefined,
    age: Number.isNaN(renewed) ? undefined : (now - renewed) / 1000,
  };
}

/** Why there is no leader; undefined: there is one. */
export function leaderless(name: string, election: Election | undefined): string | undefined {
  if (election?.leader === undefined) return `no replica of ${name} is the leader`;
  const { age } = election;
  if (age === undefined || age <= OVERDUE_SECONDS) return undefined;
  return `the Lease ${name} was last renewed ${Math.round(age)} s ago`;
}

/**
 * Plumbline's own scheduler, by its Lease. Empty if the user may not read the Lease.
 * @param now milliseconds since 1970
 * @throws KubeError
 */
export async function readScheduler(client: Pick<KubeClient, 'get'>, now: number): Promise<SchedulerFacts> {
  const election = await readElection(client, SCHEDULER_LEASE, now).then((value) => ({ value }), undefinedIfForbidden);
  return election === undefined ? {} : electionFacts(election.value);
}

export function electionFacts(election: Election | undefined): SchedulerFacts {
  const away = leaderless(SCHEDULER, election);
  return { leads: away === undefined, away };
}
