import { isNotFound } from '../../kube/client.ts';
import { DEFAULT_LEASE_SECONDS } from '../../model/lease/timing.ts';
import { AGENT_LEASE_PREFIX, NAMESPACE } from '../../model/names.ts';
import { ProblemLog } from '../../runtime/problem-log.ts';
import { monotonicSeconds, secondsUntilTick } from '../../runtime/time.ts';
import {
  createLease,
  type LeaseName,
  leaseText,
  ownedBy,
  patchLease,
  Renewals,
  readNode,
} from '../kube-objects/lease.ts';
import type { Services } from '../lifecycle/duty.ts';
import type { AgentMessages } from '../telemetry/log-messages.ts';

/** Seconds between renewals. */
const INTERVAL_SECONDS = 10;

export interface AgentLeaseDeps extends Omit<Services, 'events'> {
  /** Milliseconds since the epoch. */
  readonly wallClock: () => number;
}

/**
 * The agent's own Lease. A renewal says: the published report is what the node has. Owner: this agent, which calls
 * `renew` only while the published report is current. Age: the duration of the Lease. End: without renewals the extender stops
 * promising anything on the node.
 */
export class AgentLease {
  readonly #deps: AgentLeaseDeps;
  readonly #lease: LeaseName;
  readonly #problems: ProblemLog<AgentMessages>;
  readonly #renewals: Renewals;
  #hasRenewed = false;
  #dueAt = Number.NEGATIVE_INFINITY;

  constructor(deps: AgentLeaseDeps) {
    this.#deps = deps;
    this.#lease = { namespace: NAMESPACE, name: AGENT_LEASE_PREFIX + deps.nodeName };
    this.#problems = new ProblemLog(deps.log);
    this.#renewals = new Renewals(deps.wallClock);
  }

  /** In monotonic seconds. */
  get dueAt(): number {
    return this.#dueAt;
  }

  /** Renews it if that is due. @returns whether it had to be created: Kubernetes deletes it and the report with the Node */
  async renew(signal: AbortSignal): Promise<boolean> {
    if (monotonicSeconds() < this.#dueAt) return false;
    this.#dueAt = monotonicSeconds() + secondsUntilTick(INTERVAL_SECONDS);
    try {
      const isNew = await this.#renewOrCreate(signal);
      this.#hasRenewed = true;
      this.#problems.recovered();
      this.#deps.metrics.heartbeats.inc({ outcome: 'renewed' });
      return isNew;
    } catch (err) {
      if (signal.aborted) return false;
      this.#problems.failed(err, 'renewing the agent’s Lease failed; retrying');
      this.#deps.metrics.heartbeats.inc({ outcome: 'failed' });
      return false;
    }
  }

  /** Does not renew it, because the report is not current. */
  withhold(reason: string): void {
    if (monotonicSeconds() < this.#dueAt) return;
    this.#problems.failed(reason, 'the agent’s Lease is not renewed: the report is not current');
    this.#deps.metrics.heartbeats.inc({ outcome: 'withheld' });
  }

  async #renewOrCreate(signal: AbortSignal): Promise<boolean> {
    const { client, nodeName, log } = this.#deps;
    const lease = this.#lease;
    const renewTime = this.#renewals.next();
    try {
      await patchLease(client, lease, { spec: { renewTime, holderIdentity: nodeName } }, signal);
      return false;
    } catch (error) {
      if (!isNotFound(error)) throw error;
    }
    const owner = ownedBy(await readNode(client, nodeName, signal));
    await createLease(client, lease, { owner, holder: nodeName, duration: DEFAULT_LEASE_SECONDS, renewTime }, signal);
    if (this.#hasRenewed) log.warn({ lease: leaseText(lease) }, 'the agent’s Lease was deleted; created it again');
    return true;
  }
}
