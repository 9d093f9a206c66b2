import type { KubeClient } from '../../kube/client.ts';
import { isAlreadyExists, isConflict, isNotFound } from '../../kube/errors.ts';
import type { Logger } from '../../runtime/log.ts';
import { sleep } from '../../runtime/time.ts';
import { createLease, type LeaseIdentity, type LeaseObject, patchLease, readLease } from '../lease-object.ts';
import { type NodeIdentity, ownedBy, readNode } from '../node-object.ts';
import { createProblemLog } from '../problem-log.ts';
import type { DpuLeaseTiming } from './timing.ts';

export interface DpuHostDeps {
  readonly client: KubeClient;
  readonly nodeName: string;
  readonly lease: LeaseIdentity;
  readonly timing: DpuLeaseTiming;
  readonly log: Logger;
}

/**
 * The host's side of a DPU's Lease: sees to it that the Lease is there, with the right holder and duration and owned by
 * the node as it is now. It never writes renewTime, not even at first: only the DPU can say that the DPU is alive.
 */
export function createDpuHostLease({ client, nodeName, lease, timing, log }: DpuHostDeps) {
  const problems = createProblemLog(log);

  const tend = async (signal: AbortSignal): Promise<void> => {
    const node = await readNode(client, nodeName, signal);
    try {
      await putRight(await readLease(client, lease, signal), node, signal);
    } catch (error) {
      if (!isNotFound(error)) throw error;
      await createLease(client, lease, node, undefined, signal);
      log.info({ lease: lease.name, duration: lease.duration }, 'created the DPU lease; the DPU is to renew it');
    }
  };

  const putRight = async (found: LeaseObject, node: NodeIdentity, signal: AbortSignal): Promise<void> => {
    const wrong = differences(found, lease, node);
    if (wrong.length === 0) return;
    const patch = {
      // A list in a merge patch replaces the old one: the uid of a node that is gone must not stay beside the new.
      metadata: { resourceVersion: found.metadata.resourceVersion, ownerReferences: [ownedBy(node)] },
      spec: { holderIdentity: lease.holder, leaseDurationSeconds: lease.duration },
    };
    await patchLease(client, lease, patch, signal);
    log.warn({ lease: lease.name, wrong }, 'put the DPU lease right');
  };

  return {
    /** The duty. An API server that does not answer is asked again; nothing hangs on the next second. */
    async run(signal: AbortSignal): Promise<void> {
      const period = Math.min(timing.interval, timing.duration / 4);
      while (!signal.aborted) {
        try {
          await tend(signal);
          problems.gone();
        } catch (err) {
          if (signal.aborted) break;
          // Somebody else wrote in between: the next round reads again.
          if (!isConflict(err) && !isAlreadyExists(err))
            problems.met(err, `cannot see to the lease ${lease.name}, trying on`);
        }
        await sleep(period, signal).catch(() => undefined);
      }
    },
  };
}

/** What about the Lease is not as it should be, in words. */
function differences({ metadata, spec }: LeaseObject, lease: LeaseIdentity, node: NodeIdentity): string[] {
  const wrong: string[] = [];
  const [owner, ...others] = metadata.ownerReferences ?? [];
  if (owner?.uid !== node.uid) wrong.push(`owner ${owner?.uid ?? 'missing'}, the node is ${node.uid}`);
  if (others.length > 0) wrong.push(`${others.length} further owners`);
  if (owner?.blockOwnerDeletion === true) wrong.push('blockOwnerDeletion');
  if (spec?.holderIdentity !== lease.holder) wrong.push(`holder ${spec?.holderIdentity ?? 'missing'}`);
  if (spec?.leaseDurationSeconds !== lease.duration) wrong.push(`duration ${spec?.leaseDurationSeconds ?? 'missing'}`);
  return wrong;
}
