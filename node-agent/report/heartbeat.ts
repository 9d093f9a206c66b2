import { isNotFound } from '../../kube/client.ts';
import { AGENT_LEASE_PREFIX } from '../../model/lease/agent-health.ts';
import { DEFAULT_LEASE_SECONDS } from '../../model/lease/timing.ts';
import { NAMESPACE } from '../../model/names.ts';
import { ProblemLog } from '../../runtime/problem-log.ts';
import {
  createLease,
  createRenewals,
  type LeaseName,
  leaseText,
  ownedBy,
  patchLease,
  readNode,
} from '../kube-objects/lease.ts';
import { repeat, type Services } from '../lifecycle/duty.ts';

/** Seconds between renewals. */
const INTERVAL_SECONDS = 10;

export interface HeartbeatDeps extends Omit<Services, 'events'> {
  /** Milliseconds since the epoch. */
  readonly wallClock: () => number;
  /** Called after creating the Lease: Kubernetes deletes it with the node, and the report, too. */
  readonly onCreated?: () => void;
}

/** Renews the agent's own Lease, so that a silent agent does not look like a node without changes. */
export function createHeartbeat({ client, nodeName, log, metrics, wallClock, onCreated }: HeartbeatDeps) {
  const name = AGENT_LEASE_PREFIX + nodeName;
  const lease: LeaseName = { namespace: NAMESPACE, name };
  const problems = new ProblemLog(log);
  const renewals = createRenewals(wallClock);

  let hasRenewed = false;
  const renew = async (signal: AbortSignal): Promise<void> => {
    const renewTime = renewals.next();
    try {
      await patchLease(client, lease, { spec: { renewTime, holderIdentity: nodeName } }, signal);
    } catch (error) {
      if (!isNotFound(error)) throw error;
      const owner = ownedBy(await readNode(client, nodeName, signal));
      await createLease(client, lease, { owner, holder: nodeName, duration: DEFAULT_LEASE_SECONDS, renewTime }, signal);
      if (hasRenewed) log.warn({ lease: leaseText(lease) }, 'the agent’s Lease was deleted; created it again');
      onCreated?.();
    }
  };

  const round = async (signal: AbortSignal): Promise<number> => {
    await renew(signal);
    hasRenewed = true;
    metrics.heartbeats.inc({ outcome: 'renewed' });
    problems.recovered();
    return INTERVAL_SECONDS;
  };
  const onError = (err: unknown): number => {
    problems.failed(err, 'renewing the agent’s Lease failed; retrying');
    metrics.heartbeats.inc({ outcome: 'failed' });
    return INTERVAL_SECONDS;
  };
  return { run: (signal: AbortSignal) => repeat(signal, round, onError) };
}
