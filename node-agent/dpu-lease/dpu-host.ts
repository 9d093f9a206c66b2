import { isAlreadyExists, isConflict, isNotFound, type KubeClient } from '../../kube/client.ts';
import { isReleased, RELEASED_HOLDER, repairLease } from '../../model/lease/repair.ts';
import { type LeaseTiming, observationPeriod } from '../../model/lease/timing.ts';
import { sleep } from '../../runtime/time.ts';
import {
  createLease,
  type LeaseName,
  type LeaseObject,
  patchLease,
  readLease,
  readNode,
} from '../kube-objects/lease.ts';
import type { AgentLogger } from '../telemetry/log-messages.ts';
import { createProblemLog } from '../telemetry/problem-log.ts';

export interface LeaseReleaseDeps {
  readonly client: KubeClient;
  readonly lease: LeaseName;
  readonly log: AgentLogger;
}

export interface DpuHostDeps extends LeaseReleaseDeps {
  readonly nodeName: string;
  readonly timing: LeaseTiming;
}

/**
 * Maintains the host's side of a DPU's Lease: the right holder and duration, owned by the current Node. It never writes
 * renewTime, not even when it creates the Lease: only the DPU can prove that the DPU is alive.
 */
export function createDpuHostLease({ client, nodeName, lease, timing, log }: DpuHostDeps) {
  const problems = createProblemLog(log);
  const { duration } = timing;

  const reconcile = async (signal: AbortSignal): Promise<void> => {
    const node = await readNode(client, nodeName, signal);
    const current = await findLease(client, lease, signal);
    const repair = repairLease(current, { nodeName, nodeUid: node.uid, duration });
    if (repair.kind === 'none') return;
    const { ownerReferences, holderIdentity, leaseDurationSeconds } = repair.form;
    if (repair.kind === 'create') {
      await createLease(client, lease, { owner: ownerReferences[0], holder: holderIdentity, duration }, signal);
      log.info({ lease: lease.name, duration }, 'DPU lease created; waiting for the DPU to renew it');
      return;
    }
    const patch = {
      // A list in a merge patch replaces the old one: the uid of a deleted node must not stay next to the new one.
      metadata: { resourceVersion: current?.metadata.resourceVersion, ownerReferences },
      spec: { holderIdentity, leaseDurationSeconds },
    };
    await patchLease(client, lease, patch, signal);
    log.warn({ lease: lease.name, faults: repair.faults }, 'DPU lease repaired');
  };

  return {
    /** The duty. It retries while the API server does not answer; no other part needs the Lease within a second. */
    async run(signal: AbortSignal): Promise<void> {
      const period = observationPeriod(timing);
      while (!signal.aborted) {
        try {
          await reconcile(signal);
          problems.recovered();
        } catch (err) {
          if (signal.aborted) break;
          // Another client wrote in between: the next round reads the Lease again.
          if (!isConflict(err) && !isAlreadyExists(err))
            problems.failed(err, 'maintaining the DPU lease failed; retrying');
        }
        await sleep(period, signal).catch(() => undefined);
      }
    },
  };
}

/** Undefined if it does not exist. @throws KubeError */
function findLease(client: KubeClient, lease: LeaseName, signal: AbortSignal): Promise<LeaseObject | undefined> {
  return readLease(client, lease, signal).catch((error: unknown) => {
    if (isNotFound(error)) return undefined;
    throw error;
  });
}

/** Seconds between two checks of a Lease that is released or missing, and after a failure. */
const CHECK_SECONDS = 60;
const RETRY_SECONDS = 5;

/**
 * The host's side of a DPU's Lease where the health check is off: it releases a Lease of an earlier run, so that the
 * missing renewals do not count as a dead DPU. The Lease itself stays: a DPU that still renews must find it, and
 * turning the check on again needs no new one.
 */
export function createLeaseRelease({ client, lease, log }: LeaseReleaseDeps) {
  const problems = createProblemLog(log);

  /** @returns seconds until the next check */
  const reconcile = async (signal: AbortSignal): Promise<number> => {
    const current = await findLease(client, lease, signal);
    if (current === undefined || isReleased(current.spec)) return CHECK_SECONDS;
    const { resourceVersion } = current.metadata;
    const patch = { metadata: { resourceVersion }, spec: { holderIdentity: RELEASED_HOLDER } };
    await patchLease(client, lease, patch, signal);
    log.info({ lease: lease.name }, 'DPU lease released; health check off');
    return CHECK_SECONDS;
  };

  return {
    async run(signal: AbortSignal): Promise<void> {
      while (!signal.aborted) {
        let wait = RETRY_SECONDS;
        try {
          wait = await reconcile(signal);
          problems.recovered();
        } catch (err) {
          if (signal.aborted) break;
          if (!isConflict(err)) problems.failed(err, 'releasing the DPU lease failed; retrying');
        }
        await sleep(wait, signal).catch(() => undefined);
      }
    },
  };
}
