import { createLeaderReflector, Leader } from '../../kube/cluster-view/leases.ts';
import type { WatchOptions } from '../../kube/reflector.ts';
import { NAMESPACE } from '../../model/names.ts';

/** Seconds without a renewal: several times the duration of the Lease (base/scheduler/config.yaml). */
const SILENT_SECONDS = 30;

/** Whether the scheduler's leader renews the Lease with its name. @param name empty: nothing is watched */
export function createSchedulerLease(name: string, options: WatchOptions) {
  const leader = new Leader();
  const leases = createLeaderReflector({ ...options, namespace: NAMESPACE, name }, leader);
  return {
    schedulerName: name,
    run: (signal: AbortSignal) => (name === '' ? Promise.resolve() : leases.run(signal)),
    /** Why it does not work at present; undefined while it works, or while the Lease cannot be read. */
    get away(): string | undefined {
      if (name === '' || !leases.synced) return undefined;
      if (leader.holder === undefined) return 'no replica of it has ever led';
      if (leader.holder === '') return 'no replica of it leads';
      const silent = Math.round(leader.silentSeconds(options.nowSeconds()));
      return silent > SILENT_SECONDS ? `its leader has not renewed its Lease for ${silent} s` : undefined;
    },
  };
}
