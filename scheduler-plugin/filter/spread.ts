import type { Domains } from '../cluster/node-domains.ts';

/** Domains of one key that are answered for. */
const MOST_DOMAINS = 16;
/** Of a key whose domains are not known, as kubernetes.io/hostname: nodes that are answered, each as its own domain. */
const MOST_NODES = 4;
/** Nodes of a domain that are predicted to find one that fits. */
const MOST_TRIES = 8;

/** Which nodes a pod's soft constraints call for beyond those that are answered anyway. */
export interface Spread {
  /** Whether an answer with this node would leave the scheduler a choice that it does not have yet. */
  wants(id: number): boolean;
  /** The node was predicted. */
  tried(id: number, fits: boolean): void;
  /** Nothing is wanted any more. */
  readonly complete: boolean;
}

/**
 * A preferred affinity, or a spread that may be violated, is a wish among nodes that fit: kube-scheduler can heed it only
 * if it is left a node in each domain. So one is answered for each, where there would otherwise be one for all.
 *
 * @param domains of each topology key that the constraints name; undefined where they are not known
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
  /** By domain: tries that are left. */
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
