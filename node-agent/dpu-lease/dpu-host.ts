import { isAlreadyExists, isConflict, isNotFound, type KubeClient } from '../../kube/client.ts';
import { isReleased, RELEASED_HOLDER, repairLease } from '../../model/lease/repair.ts';
import { type LeaseTiming, observationPeriod } from '../../model/lease/timing.ts';
import { ProblemLog } from '../../runtime/problem-log.ts';
import {
  createLease,
  type LeaseName,
  type LeaseObject,
  leaseText,
  patchLease,
  readLease,
  readNode,
} from '../kube-objects/lease.ts';
import { repeat, type Services } from '../lifecycle/duty.ts';

export interface DpuHostDeps extends Pick<Services, 'client' | 'nodeName' | 'log'> {
  readonly lease: LeaseName;
  readonly timing: LeaseTiming;
}

/** Pauses that do not grow. */
const everySeconds = (seconds: number) => ({ next: () => seconds, reset: () => undefined });

/**
 * Maintains the host's side of a DPU's Lease, without renewTime: only the DPU can prove that it is alive. It retries while
 * the API server does not answer; no other part needs the Lease within a second.
 */
export function maintainDpuLease(deps: DpuHostDeps, signal: AbortSignal): Promise<void> {
  const period = observationPeriod(deps.timing);
  const warning = 'maintaining the DPU lease failed; retrying';
  const round = async () => {
    await reconcile(deps, signal).catch(unlessWritten);
    return period;
  };
  return repeat(signal, round, { problems: new ProblemLog(deps.log), warning, pauses: everySeconds(period) });
}

async function reconcile({ client, nodeName, lease, timing, log }: DpuHostDeps, signal: AbortSignal): Promise<void> {
  const { duration } = timing;
  const node = await readNode(client, nodeName, signal);
  const current = await findLease(client, lease, signal);
  const repair = repairLease(current, { nodeName, nodeUid: node.uid, duration });
  if (repair.kind === 'none') return;
  const { ownerReferences, holderIdentity, leaseDurationSeconds } = repair.form;
  if (repair.kind === 'create') {
    await createLease(client, lease, { owner: ownerReferences[0], holder: holderIdentity, duration }, signal);
    const fields = { lease: leaseText(lease), durationSeconds: duration };
    return log.info(fields, 'DPU lease created; waiting for the DPU to renew it');
  }
  const patch = {
    // A list in a merge patch replaces the old one: the uid of a deleted node must not stay next to the new one.
    metadata: { resourceVersion: current?.metadata.resourceVersion, ownerReferences },
    spec: { holderIdentity, leaseDurationSeconds },
  };
  await patchLease(client, lease, patch, signal);
  log.warn({ lease: leaseText(lease), reasons: repair.faults }, 'DPU lease repaired');
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

/** Missing renewals must not count as a dead DPU; a DPU that still renews must find its Lease. */
export function releaseDpuLease(
  { client, lease, log }: Pick<DpuHostDeps, 'client' | 'lease' | 'log'>,
  signal: AbortSignal,
): Promise<void> {
  const warning = 'releasing the DPU lease failed; retrying';
  const round = async () => {
    const current = await findLease(client, lease, signal);
    if (current === undefined || isReleased(current.spec)) return CHECK_SECONDS;
    const { resourceVersion } = current.metadata;
    const patch = { metadata: { resourceVersion }, spec: { holderIdentity: RELEASED_HOLDER } };
    const released = await patchLease(client, lease, patch, signal).catch(unlessWritten);
    if (released === undefined) return RETRY_SECONDS;
    log.info({ lease: leaseText(lease) }, 'DPU lease released; health check off');
    return CHECK_SECONDS;
  };
  return repeat(signal, round, { problems: new ProblemLog(log), warning, pauses: everySeconds(RETRY_SECONDS) });
}

/** Another client wrote in between: the next round reads the Lease again. @throws any other error */
function unlessWritten(error: unknown): undefined {
  if (!isConflict(error) && !isAlreadyExists(error)) throw error;
}
