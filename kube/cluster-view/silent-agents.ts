import { AGENT_LEASE_PREFIX, NAMESPACE } from '../../model/names.ts';
import { sleep } from '../../runtime/time.ts';
import type { Change, Watch } from '../reflector.ts';
import { type NodeLease, type Renewal, renewalAfter } from './leases.ts';

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

type LeaseChange = Pick<Change<NodeLease | undefined>, 'before' | 'after'>;

/**
 * The nodes whose agent is silent; one that never had a Lease is not. Owner: the agents' Leases, whose renewals are
 * observed here. Age: checked every second. End: the Lease and the Node are both deleted; a Lease deleted alone counts
 * as not renewed.
 */
export class SilentAgents {
  readonly #options: SilentAgentsOptions;
  /** By node. */
  readonly #renewals = new Map<string, Renewal>();
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
  leaseChanged({ before: lease, after }: LeaseChange, nodes: ReadonlyMap<string, unknown>): void {
    if (after === undefined) {
      if (lease === undefined) return;
      this.#leases.delete(lease.node);
      if (!nodes.has(lease.node)) this.#forget(lease.node);
      return;
    }
    this.#leases.add(after.node);
    const before = this.#renewals.get(after.node);
    const renewal = renewalAfter(before, after.renewTime, after.duration, this.#options.nowSeconds());
    this.#renewals.set(after.node, renewal);
    if (renewal.isProven && before?.isProven === false) this.#options.onRenewed?.(after.node, true);
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
      const nodes = this.#notRenewed(Math.min(nowSeconds(), leases.lastHeard ?? Number.NEGATIVE_INFINITY));
      for (const node of reported?.() ?? []) if (this.#renewals.get(node)?.isProven !== true) nodes.add(node);
      this.#nodes = nodes;
      for (const node of nodes) if (!before.has(node)) onSilent(node, true);
      for (const node of before) if (!nodes.has(node)) onSilent(node, false);
    }
  }

  /** @param until when the watch was last heard: without news from it, a Lease without a renewal proves nothing */
  #notRenewed(until: number): Set<string> {
    const nodes = [...this.#renewals].filter(([, { at, duration }]) => until >= at + duration);
    return new Set(nodes.map(([node]) => node));
  }

  #forget(node: string): void {
    this.#renewals.delete(node);
    this.#options.onRenewed?.(node, false);
  }
}
