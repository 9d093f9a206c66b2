import type { KubeClient } from '../../kube/client.ts';
import { isConflict, isNotFound } from '../../kube/errors.ts';
import { isReleased, RELEASED_HOLDER } from '../../model/lease/released.ts';
import type { Logger } from '../../runtime/log.ts';
import { sleep } from '../../runtime/time.ts';
import { type LeaseName, patchLease, readLease } from '../kube-objects/lease.ts';
import { createProblemLog } from '../telemetry/problem-log.ts';

export interface LeaseReleaseDeps {
  readonly client: KubeClient;
  readonly lease: LeaseName;
  readonly log: Logger;
}

/** Seconds between two checks of a Lease that is released or missing, and after a failure. */
const PERIOD = 60;
const RETRY = 5;

/**
 * The host's side of a DPU's Lease where the health check is off: it releases a Lease of an earlier run, so that the
 * missing renewals do not count as a dead DPU. The Lease itself stays: a DPU that still renews must find it, and
 * turning the check on again needs no new one.
 */
export function createLeaseRelease({ client, lease, log }: LeaseReleaseDeps) {
  const problems = createProblemLog(log);

  /** @returns seconds until the next check */
  const look = async (signal: AbortSignal): Promise<number> => {
    const found = await readLease(client, lease, signal).catch((error: unknown) => {
      if (isNotFound(error)) return undefined;
      throw error;
    });
    if (found === undefined || isReleased(found.spec)) return PERIOD;
    const { resourceVersion } = found.metadata;
    await patchLease(
      client,
      lease,
      { metadata: { resourceVersion }, spec: { holderIdentity: RELEASED_HOLDER } },
      signal,
    );
    log.info({ lease: lease.name }, 'DPU lease released; health check off');
    return PERIOD;
  };

  return {
    async run(signal: AbortSignal): Promise<void> {
      while (!signal.aborted) {
        let wait = RETRY;
        try {
          wait = await look(signal);
          problems.gone();
        } catch (err) {
          if (signal.aborted) break;
          if (!isConflict(err)) problems.met(err, `releasing lease ${lease.name} failed; retrying`);
        }
        await sleep(wait, signal).catch(() => undefined);
      }
    },
  };
}
