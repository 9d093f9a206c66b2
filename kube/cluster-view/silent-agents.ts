import { AGENT_LEASE_PREFIX, AgentHealth, type AgentLease } from '../../model/lease/agent-health.ts';
import { NAMESPACE } from '../../model/names.ts';
import { sleep } from '../../runtime/time.ts';
import type { Change, Watch } from '../reflector.ts';

const CHECK_INTERVAL_SECONDS = 1;

/** Of the Lease of a node's agent in its reflector. */
export const agentLeaseKey = (node: string): string => `${NAMESPACE}/${AGENT_LEASE_PREFIX}${node}`;

export interface SilentAgentsOptions {
  readonly onSilent: (node: string, isSilent: boolean) => void;
  /** Called when the first renewal was observed, and when the agent is forgotten. */
  readonly onRenewed?: (node: string, hasRenewed: boolean) => void;
  /** Monotonic seconds. */
  readonly nowSeconds: () => number;
}

type LeaseChange = Pick<Change<AgentLease | undefined>, 'before' | 'after'>;

/**
 * The nodes whose agent is silent. Owner: the agents' Leases, whose renewals are observed here. Age: checked every
 * second. End: the Lease and the Node are both deleted.
 */
export class SilentAgents {
  readonly #options: SilentAgentsOptions;
  readonly #health = new AgentHealth();
  /** The nodes with such a Lease. */
  readonly #leases = new Set<string>();
  #nodes: ReadonlySet<string> = new Set();

  constructor(options: SilentAgentsOptions) {
    this.#options = options;
  }

  get nodes(): ReadonlySet<string> {
    return this.#nodes;
  }

  /** @param nodes the watched Nodes */
  leaseChanged({ before, after }: LeaseChange, nodes: ReadonlyMap<string, unknown>): void {
    if (after === undefined) {
      if (before === undefined) return;
      this.#leases.delete(before.node);
      if (!nodes.has(before.node)) this.#forget(before.node);
      return;
    }
    this.#leases.add(after.node);
    const hadRenewed = this.#health.hasRenewed(after.node);
    this.#health.changed(after, this.#options.nowSeconds());
    if (this.#health.hasRenewed(after.node) !== hadRenewed) this.#options.onRenewed?.(after.node, true);
  }

  nodeDeleted(node: string): void {
    if (!this.#leases.has(node)) this.#forget(node);
  }

  /**
   * Checks until the signal.
   * @param leases the watch of the Leases
   * @param reported nodes whose agent the extender calls silent, which counts until a renewal is observed here
   */
  async run(leases: Pick<Watch, 'lastHeard'>, signal: AbortSignal, reported?: () => Iterable<string>): Promise<void> {
    const { onSilent, nowSeconds } = this.#options;
    while (!signal.aborted) {
      await sleep(CHECK_INTERVAL_SECONDS, signal).catch(() => undefined);
      const before = this.#nodes;
      const nodes = this.#health.stale(nowSeconds(), leases.lastHeard);
      for (const node of reported?.() ?? []) if (!this.#health.hasRenewed(node)) nodes.add(node);
      this.#nodes = nodes;
      for (const node of nodes) if (!before.has(node)) onSilent(node, true);
      for (const node of before) if (!nodes.has(node)) onSilent(node, false);
    }
  }

  #forget(node: string): void {
    this.#health.forget(node);
    this.#options.onRenewed?.(node, false);
  }
}
