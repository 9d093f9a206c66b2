import { createReflector } from '../../kube/reflector.ts';
import { lease as leaseSchema } from '../../kube/resources.ts';
import { NAMESPACE } from '../../model/names.ts';
import type { CacheOptions } from './node-cache.ts';

/** Seconds without a renewal: several times the duration of the Lease (base/scheduler/config.yaml). */
const SILENT_SECONDS = 30;

/** Whether the scheduler's leader renews the Lease with its name. @param name empty: nothing is watched */
export function createSchedulerLease(name: string, { client, log, nowSeconds }: CacheOptions) {
  let renewed: number | undefined;
  let holder: string | undefined;
  const leases = createReflector({
    client,
    path: `/apis/coordination.k8s.io/v1/namespaces/${NAMESPACE}/leases`,
    query: { fieldSelector: `metadata.name=${name}` },
    schema: leaseSchema,
    project: ({ spec }) => spec?.holderIdentity ?? '',
    onChange: ({ after }) => {
      holder = after;
      renewed = nowSeconds();
    },
    log,
    nowSeconds,
  });
  return {
    run: (signal: AbortSignal) => (name === '' ? Promise.resolve() : leases.run(signal)),
    /** Why it does not work at present; undefined while it works, or while the Lease cannot be read. */
    away(): string | undefined {
      if (name === '' || !leases.synced) return undefined;
      if (holder === undefined) return 'no replica of it has ever led';
      if (holder === '') return 'no replica of it leads';
      const silent = Math.round(nowSeconds() - (renewed ?? 0));
      return silent > SILENT_SECONDS ? `its leader has not renewed its Lease for ${silent} s` : undefined;
    },
  };
}
