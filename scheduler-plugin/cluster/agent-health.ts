import { type LeaseObservation, NOTHING_OBSERVED, observeLease } from '../../model/lease/observer.ts';

/** The Lease by which a node's agent says that it lives is this and the node's name. */
export const AGENT_LEASE_PREFIX = 'plumbline-agent-';
const DEFAULT_DURATION = 40;

export interface AgentLease {
  readonly node: string;
  readonly renewTime: string | undefined;
  /** Seconds. */
  readonly duration: number | undefined;
}

/**
 * Whether reports are still kept: by the lease of each node's agent, which has to change within its duration as seen
 * from here. A node whose agent has no lease is not judged. Times are seconds of one monotonic clock.
 */
export class AgentHealth {
  readonly #agents = new Map<string, { observation: LeaseObservation; duration: number; heard: number }>();

  changed({ node, renewTime, duration }: AgentLease, now: number): void {
    const before = this.#agents.get(node);
    const lasts = duration ?? DEFAULT_DURATION;
    const reading = { kind: 'read', renewTime } as const;
    const observation = observeLease(before?.observation ?? NOTHING_OBSERVED, reading, now, { duration: lasts });
    const isNews = before === undefined || observation.changedAt !== before.observation.changedAt;
    this.#agents.set(node, { observation, duration: lasts, heard: isNews ? now : before.heard });
  }

  gone(node: string): void {
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
