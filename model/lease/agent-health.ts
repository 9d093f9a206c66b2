import { type LeaseObservation, NOTHING_OBSERVED, observeLease } from './observer.ts';
import { leaseSeconds } from './timing.ts';

/** The node's name follows. */
export const AGENT_LEASE_PREFIX = 'plumbline-agent-';

export interface AgentLease {
  readonly node: string;
  readonly renewTime: string | undefined;
  /** In seconds. */
  readonly duration: number | undefined;
}

/** Nodes whose agent never had a Lease are not checked. Times are seconds of one monotonic clock. */
export class AgentHealth {
  readonly #agents = new Map<string, { observation: LeaseObservation; duration: number; renewedAt: number }>();

  changed({ node, renewTime, duration }: AgentLease, now: number): void {
    const before = this.#agents.get(node);
    const options = { duration: leaseSeconds(duration) };
    const earlier = before?.observation ?? NOTHING_OBSERVED;
    const observation = observeLease(earlier, { kind: 'read', renewTime }, now, options);
    const isNews = before === undefined || observation.changedAt !== earlier.changedAt;
    // A renewal counts for the duration that the Lease had at that time.
    const lasts = isNews ? options.duration : Math.min(options.duration, before.duration);
    this.#agents.set(node, { observation, duration: lasts, renewedAt: isNews ? now : before.renewedAt });
  }

  /** Whether a renewal was observed. The first reading of a Lease proves none. */
  hasRenewed(node: string): boolean {
    return this.#agents.get(node)?.observation.changedAt !== undefined;
  }

  /** When both the node and its agent's Lease are deleted; a Lease deleted alone counts as not renewed. */
  forget(node: string): void {
    this.#agents.delete(node);
  }

  /** @param listenedAt when the watch last received anything: without that, a Lease without news proves nothing */
  stale(now: number, listenedAt: number | undefined): Set<string> {
    const until = Math.min(now, listenedAt ?? Number.NEGATIVE_INFINITY);
    const stale = [...this.#agents].filter(([, { renewedAt, duration }]) => until >= renewedAt + duration);
    return new Set(stale.map(([node]) => node));
  }
}
