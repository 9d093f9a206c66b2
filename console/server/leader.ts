import type { Lease } from '../../kube/resources.ts';
import { AgentHealth } from '../../model/lease/agent-health.ts';
import { SCHEDULER } from '../../model/names.ts';

/** The Lease of Plumbline's kube-schedulers. */
export const LEADER_LEASE = SCHEDULER;

/** The stored part of a Lease. */
export type LeaseSpec = Partial<NonNullable<Lease['spec']>>;

/** The pod with the leading kube-scheduler, from the Lease. */
export function createLeader() {
  const health = new AgentHealth();
  let pod: string | null | undefined;
  return {
    changed(lease: LeaseSpec | undefined, now: number) {
      if (lease === undefined) {
        pod = undefined;
        health.forget(LEADER_LEASE);
        return;
      }
      const { holderIdentity: holder = '', renewTime, leaseDurationSeconds: duration } = lease;
      pod = holder.slice(0, Math.max(0, holder.lastIndexOf('_'))) || null;
      health.changed({ node: LEADER_LEASE, renewTime, duration }, now);
    },
    /**
     * @param heard when the watch of Leases last received anything
     * @returns the name of the pod; null: no leader; undefined: the cluster has no such Lease
     */
    pod: (now: number, heard: number | undefined) => (pod && health.stale(now, heard).has(LEADER_LEASE) ? null : pod),
  };
}
