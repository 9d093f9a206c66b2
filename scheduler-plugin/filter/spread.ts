import type { Domains } from '../cluster/node-domains.ts';

/** Maximum domains of one key in an answer. */
const MOST_DOMAINS = 16;
/** Nodes in an answer for a key with unknown domains, such as kubernetes.io/hostname; each is its own domain. */
const MOST_NODES = 4;
/** Maximum predictions in a domain to find a node that fits. */
const MOST_TRIES = 8;

/** The nodes that a pod's soft constraints add to an answer. */
export interface Spread {
  /** Whether this node would give the scheduler a choice that it does not have yet. */
  wants(id: number): boolean;
  /** Records the prediction of a node. */
  tried(id: number, fits: boolean): void;
  /** Whether no further node is wanted. */
  readonly complete: boolean;
}

/**
 * A preferred affinity, or a spread that may be violated, is a preference among nodes that fit: kube-scheduler can
 * follow it only if the answer contains a node in each domain. So the answer has one node for each domain, where
 * otherwise one node would be enough.
 *
 * @param domains for each topology key of the constraints; undefined if unknown
 */
export function createSpread(domains: readonly (Domains | undefined)[]): Spread {
  const keys = domains.map(keyOf);
  return {
    wants: (id) => keys.some((key) => key.wants(id)),
    tried(id, fits) {
      for (const key of keys) key.tried(id, fits);
    },
    get complete() {
      return keys.every((key) => key.complete);
    },
  };
}

function keyOf(domains: Domains | undefined): Spread {
  if (domains === undefined) {
    let left = MOST_NODES;
    let tries = MOST_NODES * MOST_TRIES;
    return {
      wants: () => left > 0 && tries > 0,
      tried(_, fits) {
        tries--;
        if (fits) left--;
      },
      get complete() {
        return left <= 0 || tries <= 0;
      },
    };
  }
  const { ofNode, count } = domains;
  /** Remaining predictions, by domain. */
  const open = new Map<number, number>();
  let settled = 0;
  let answered = 0;
  const isComplete = () => settled >= count || answered >= MOST_DOMAINS;
  return {
    wants(id) {
      const domain = ofNode[id] ?? 0;
      return domain !== 0 && !isComplete() && (open.get(domain) ?? MOST_TRIES) > 0;
    },
    tried(id, fits) {
      const domain = ofNode[id] ?? 0;
      const left = open.get(domain) ?? MOST_TRIES;
      if (domain === 0 || left === 0) return;
      open.set(domain, fits ? 0 : left - 1);
      if (fits) answered++;
      if (fits || left === 1) settled++;
    },
    get complete() {
      return isComplete();
    },
  };
}
