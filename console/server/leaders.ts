import type { Lease } from '../../kube/resources.ts';
import { AgentHealth } from '../../model/lease/agent-health.ts';
import { SCHEDULER, SERVICE } from '../../model/names.ts';

/** The leader's pod, from the Leases of schedulers and extenders. */
export interface Leaders {
  changed(name: string, lease: Lease | undefined, now: number): void;
  /**
   * @param heard when the watch of Leases last received anything
   * @returns the name of the pod; undefined: no leader
   */
  leader(now: number, heard: number | undefined): string | undefined;
}

export const LEADER_LEASES: readonly string[] = [SCHEDULER, SERVICE];

export function createLeaders(): Leaders {
  const pods = new Map<string, string>();
  const health = new AgentHealth();
  return {
    changed(name, lease, now) {
      const holder = lease?.spec?.holderIdentity ?? '';
      const pod = holder.slice(0, Math.max(0, holder.lastIndexOf('_')));
      if (pod === '') {
        pods.delete(name);
        health.forget(name);
        return;
      }
      pods.set(name, pod);
      const { renewTime, leaseDurationSeconds: duration } = lease?.spec ?? {};
      health.changed({ node: name, renewTime, duration }, now);
    },
    leader(now, heard) {
      const silent = health.stale(now, heard);
      const leading = LEADER_LEASES.find((name) => pods.has(name) && !silent.has(name));
      return leading === undefined ? undefined : pods.get(leading);
    },
  };
}
