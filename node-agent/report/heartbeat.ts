import type { KubeClient } from '../../kube/client.ts';
import { isNotFound } from '../../kube/errors.ts';
import { NAMESPACE } from '../../model/names.ts';
import type { Logger } from '../../runtime/log.ts';
import { sleep } from '../../runtime/time.ts';
import { createLease, createRenewTimes, type LeaseIdentity, patchLease } from '../lease-object.ts';
import type { AgentMetrics } from '../metrics.ts';
import { readNode } from '../node-object.ts';
import { createProblemLog } from '../problem-log.ts';

/** The Lease by which a report's age is known is AGENT_LEASE_PREFIX + node name. */
export const AGENT_LEASE_PREFIX = 'plumbline-agent-';
/** Seconds between renewals, and for how long one counts. */
const INTERVAL = 10;
const DURATION = 40;

export interface HeartbeatDeps {
  readonly client: KubeClient;
  readonly nodeName: string;
  readonly log: Logger;
  readonly metrics: AgentMetrics;
  /** Milliseconds since the epoch. */
  readonly wallClock: () => number;
}

/** Renews the agent's own Lease, so that its silence is not mistaken for a node where nothing changes. */
export function createHeartbeat({ client, nodeName, log, metrics, wallClock }: HeartbeatDeps) {
  const name = AGENT_LEASE_PREFIX + nodeName;
  const lease: LeaseIdentity = { namespace: NAMESPACE, name, holder: nodeName, duration: DURATION };
  const problems = createProblemLog(log);
  const renewTimes = createRenewTimes(wallClock);

  const beat = async (signal: AbortSignal): Promise<void> => {
    const renewTime = renewTimes.next();
    try {
      await patchLease(client, lease, { spec: { renewTime, holderIdentity: lease.holder } }, signal);
    } catch (error) {
      if (!isNotFound(error)) throw error;
      await createLease(client, lease, await readNode(client, nodeName, signal), renewTime, signal);
    }
  };

  return {
    /** The duty. */
    async run(signal: AbortSignal): Promise<void> {
      while (!signal.aborted) {
        try {
          await beat(signal);
          metrics.heartbeats.inc({ outcome: 'renewed' });
          problems.gone();
        } catch (err) {
          if (signal.aborted) break;
          problems.met(err, `the lease ${name} cannot be renewed, trying on`);
          metrics.heartbeats.inc({ outcome: 'failed' });
        }
        await sleep(INTERVAL, signal).catch(() => undefined);
      }
    },
  };
}
