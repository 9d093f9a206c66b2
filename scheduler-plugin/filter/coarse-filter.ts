import { coarseFit, coarseNeedOf } from '../../model/placement/coarse.ts';
import { cellsOfNetwork, keepsWholeCores, sharesOn } from '../../model/placement/needs.ts';
import { type Refused, refuse, type UnpredictablePolicy, unfitShape } from '../../model/placement/verdict.ts';
import type { ClusterNode, Fleet, NodeShape } from '../cluster/fleet.ts';
import type { PodNeeds } from '../cluster/pod-needs.ts';

export interface Candidate {
  readonly node: ClusterNode;
  readonly lacksPreferred: boolean;
  /** The node has networks that the pod does not need and that others may need. */
  readonly wastesNetworks: boolean;
  /** In the NUMA nodes that the pod could use. */
  readonly left: number;
}

const TOO_FEW_CORES = refuse('too-few-whole-cores', 'too few free whole cores');
const TOO_FEW_CPUS = refuse('too-few-cpus', 'too few free CPUs');
const NO_COMMON_NODE = refuse('no-common-node', 'no NUMA node fits all resources');
const NOT_NEAR = refuse('network-elsewhere', 'no room on the NUMA nodes of a required network');

/** Whatever runs there. */
type ShapeFit = ReturnType<typeof shapeFitOf>;

/** Of thousands of nodes, only some are worth an exact prediction. Nodes of the same model share their part. */
export class CoarseFilter {
  readonly #needs: PodNeeds;
  readonly #policy: UnpredictablePolicy;
  readonly #fits = new Map<NodeShape, ShapeFit>();

  constructor(needs: PodNeeds, policy: UnpredictablePolicy) {
    this.#needs = needs;
    this.#policy = policy;
  }

  /** Why no node with this shape can run the pod. */
  unfit(shape: NodeShape): Refused | undefined {
    return this.#fitOf(shape).unfit;
  }

  /** @returns undefined for a node that would run the pod on shared CPUs */
  check(node: ClusterNode, shape: NodeShape): Candidate | Refused | undefined {
    const { unfit, shares, need, short, lacksPreferred, wastesNetworks } = this.#fitOf(shape);
    if (unfit !== undefined) return unfit;
    if (shares) return undefined;
    const left = coarseFit(need, node.free, node.reservedCpus);
    if (left !== undefined) return { node, lacksPreferred, wastesNetworks, left };
    if (need.alongside.length > 0 && coarseFit({ ...need, alongside: [] }, node.free, node.reservedCpus) !== undefined)
      return NO_COMMON_NODE;
    const anywhere = need.cells && coarseFit({ ...need, cells: undefined }, node.free, node.reservedCpus);
    return anywhere === undefined ? short : NOT_NEAR;
  }

  #fitOf(shape: NodeShape): ShapeFit {
    const fit = this.#fits.get(shape) ?? shapeFitOf(shape, this.#needs, this.#policy);
    this.#fits.set(shape, fit);
    return fit;
  }
}

function shapeFitOf({ empty }: NodeShape, needs: PodNeeds, policy: UnpredictablePolicy) {
  const wholeCores = keepsWholeCores(needs, empty);
  return {
    unfit: unfitShape(needs, empty, policy),
    /** The pod would run on shared CPUs, which need no prediction. */
    shares: sharesOn(needs, empty),
    need: coarseNeedOf(needs, empty, wholeCores),
    short: wholeCores || empty.wholeCoresOnly ? TOO_FEW_CORES : TOO_FEW_CPUS,
    lacksPreferred: needs.networks.some(
      (need) => need.affinity === 'preferred' && cellsOfNetwork(empty.networks, need) === undefined,
    ),
    wastesNetworks: empty.networks.physnets.size > needs.networks.length,
  };
}

/**
 * Nodes with preferred networks first, then those without pods in flight, whose orders a prediction has to try, then
 * those without networks that the pod does not need, then the fullest, so that large pods find empty nodes.
 */
export function compareCandidates(a: Candidate, b: Candidate): number {
  return (
    Number(a.lacksPreferred) - Number(b.lacksPreferred) ||
    Number(a.node.reservations > 0) - Number(b.node.reservations > 0) ||
    Number(a.wastesNetworks) - Number(b.wastesNetworks) ||
    a.left - b.left
  );
}

const MAX_DOMAINS = 16;
const HOSTNAME = 'kubernetes.io/hostname';
/** Nodes in an answer for HOSTNAME, and for a key that no node has: each node is its own domain. */
const MAX_NODES = 4;
/** Maximum predictions in a domain to find a node that fits. */
const MAX_TRIES_PER_DOMAIN = 8;

interface Spread {
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
