import { SCHEDULER, SERVICE } from '../../../model/names.ts';
import type { Facts } from './facts.ts';

/**
 * How the extender runs: `sidecar` in the pod of Plumbline's kube-scheduler, `own` for the cluster's own
 * kube-scheduler, `none` not at all. `unknown`: the objects that show it cannot be read.
 */
export type Way = 'sidecar' | 'own' | 'none' | 'unknown';

type Shown = Pick<Facts, 'deployments' | 'schedulerElection' | 'extenderElection' | 'endpoints'>;

/** A Lease stays after its holder is deleted, so a Deployment counts more than a Lease. */
export function wayOf({ deployments, schedulerElection, extenderElection, endpoints }: Shown): Way {
  const names = deployments.value?.map(({ metadata }) => metadata.name);
  if (names?.includes(SCHEDULER)) return 'sidecar';
  const serves = endpoints.value?.some(({ metadata }) => metadata.labels?.['kubernetes.io/service-name'] === SERVICE);
  const own = names?.includes(SERVICE) || serves || extenderElection.value !== undefined;
  if (names !== undefined) return own ? 'own' : 'none';
  if (schedulerElection.value !== undefined) return 'sidecar';
  return own ? 'own' : 'unknown';
}
