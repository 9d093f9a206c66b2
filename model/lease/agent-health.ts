import { type LeaseObservation, NOTHING_OBSERVED, observeLease } from './observer.ts';
import { leaseSeconds } from './timing.ts';

/** The Lease by which a node's agent says that it lives is this and the node's name. */
export const AGENT_LEASE_PREFIX = 'plumbline-agent-';

export interface AgentLease {
  readonly node: string;
  readonly renewTime: string | undefined;
  /** Seconds. */
  readonly duration: number | undefined;
}

/**
 * Whether reports are still kept: by the lease of each node's agent, which has to change within its duration as seen
 * from here. A node whose agent never had a lease is not judged. Times are seconds of one monotonic clock.
 */
export class AgentHealth {
  readonly #agents = new Map<string, { observation: LeaseObservation; duration: number; heard: number }>();

  changed({ node, renewTime, duration }: AgentLease, now: number): void {
    const before = this.#agents.get(node);
    const said = leaseSeconds(duration);
    const reading = { kind: 'read', renewTime } as const;
    const observation = observeLease(before?.observation ?? NOTHING_OBSERVED, reading, now, { duration: said });
    const isNews = before === undefined || observation.changedAt !== before.observation.changedAt;
    // A renewal counts for as long as the lease said when it was made.
    const lasts = isNews ? said : Math.min(said, before.duration);
    this.#agents.set(node, { observation, duration: lasts, heard: isNews ? now : before.heard });
  }

  /** Both the node and the lease of its agent are gone. A lease alone that is deleted is one that is not renewed. */
  forget(node: string): void {
    this.#agents.delete(node);
  }

  /**
   * The nodes whose report is old.
   * @param heard when the watch last brought anything: its silence proves nothing of a single lease
   */
  stale(now: number, heard: number | undefined): Set<string> {
    const stale = new Set<string>();
    for (const [node, agent] of this.#agents) {
      const deadline = agent.heard + agent.duration;
      if (now >= deadline && heard !== undefined && heard >= deadline) stale.add(node);
    }
    return stale;
  }
}
