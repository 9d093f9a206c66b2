import type { ClusterNode, Fleet } from '../cluster/fleet.ts';

const MAX_DOMAINS = 16;
const HOSTNAME = 'kubernetes.io/hostname';
/** Nodes in an answer for HOSTNAME, and for a key that no node has: each node is its own domain. */
const MAX_NODES = 4;
/** Maximum predictions in a domain to find a node that fits. */
const MAX_TRIES_PER_DOMAIN = 8;

export interface Spread {
  /** Whether this node would give the scheduler a choice that it does not have yet. */
  wants(node: ClusterNode): boolean;
  tried(node: ClusterNode, fits: boolean): void;
  /** Whether no further node would add a choice. */
  isComplete(): boolean;
}

/** A soft constraint needs a node of each domain in the answer. @param keys its topology keys */
export function createSpread(keys: readonly string[], fleet: Pick<Fleet, 'nodes'>): Spread {
  const spreads = keys.map((key) => {
    if (key === HOSTNAME) return spreadOverNodes();
    const domains = new Set<string>();
    for (const node of fleet.nodes()) {
      const domain = node.labels.get(key);
      if (domain !== undefined) domains.add(domain);
    }
    return domains.size === 0 ? spreadOverNodes() : spreadOverDomains(key, domains.size);
  });
  return {
    wants: (node) => spreads.some((spread) => spread.wants(node)),
    tried(node, fits) {
      for (const spread of spreads) spread.tried(node, fits);
    },
    isComplete: () => spreads.every((spread) => spread.isComplete()),
  };
}

function spreadOverNodes(): Spread {
  let left = MAX_NODES;
  let tries = MAX_NODES * MAX_TRIES_PER_DOMAIN;
  const isComplete = () => left <= 0 || tries <= 0;
  return {
    wants: () => !isComplete(),
    tried(_, fits) {
      tries--;
      if (fits) left--;
    },
    isComplete,
  };
}

function spreadOverDomains(key: string, count: number): Spread {
  const remaining = new Map<string, number>();
  let settled = 0;
  let answered = 0;
  const isComplete = () => settled >= count || answered >= MAX_DOMAINS;
  return {
    wants(node) {
      const domain = node.labels.get(key);
      return domain !== undefined && !isComplete() && (remaining.get(domain) ?? MAX_TRIES_PER_DOMAIN) > 0;
    },
    tried(node, fits) {
      const domain = node.labels.get(key);
      if (domain === undefined) return;
      const left = remaining.get(domain) ?? MAX_TRIES_PER_DOMAIN;
      if (left === 0) return;
      remaining.set(domain, fits ? 0 : left - 1);
      if (fits) answered++;
      if (fits || left === 1) settled++;
    },
    isComplete,
  };
}
