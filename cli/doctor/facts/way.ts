import { SCHEDULER } from '../../../model/names.ts';
import type { Facts } from './facts.ts';

/**
 * How the extender runs: `sidecar` in the pod of Plumbline's kube-scheduler, `loopback` next to the cluster's own
 * kube-scheduler, `none` not at all. `unknown`: the objects that show it cannot be read.
 */
export type Way = 'sidecar' | 'loopback' | 'none' | 'unknown';

/** A Lease stays after its holder is deleted, so a Deployment counts more than a Lease. */
export function wayOf({
  deployments,
  schedulerElection,
  extenderPods,
}: Pick<Facts, 'deployments' | 'schedulerElection' | 'extenderPods'>): Way {
  const names = deployments.value?.map(({ metadata }) => metadata.name);
  if (names?.includes(SCHEDULER)) return 'sidecar';
  const isNextToScheduler = (extenderPods.value?.length ?? 0) > 0;
  if (isNextToScheduler) return 'loopback';
  if (names !== undefined) return 'none';
  return schedulerElection.value === undefined ? 'unknown' : 'sidecar';
}
