import { type CoarseNeed, coarseFit, coarseNeedOf } from '../../model/placement/coarse.ts';
import { cellsOfNetwork, keepsWholeCores, sharesOn } from '../../model/placement/needs.ts';
import { type Refused, refuse, type UnpredictablePolicy, unfitShape } from '../../model/placement/verdict.ts';
import type { ClusterNode, NodeShape } from '../cluster/fleet.ts';
import type { PodNeeds } from '../cluster/pod-needs.ts';

export interface Candidate {
  readonly node: ClusterNode;
  readonly hasReservations: boolean;
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
interface ShapeFit extends Pick<Candidate, 'lacksPreferred' | 'wastesNetworks'> {
  readonly unfit: Refused | undefined;
  /** The pod would run on shared CPUs, which need no prediction. */
  readonly shares: boolean;
  readonly need: CoarseNeed;
  readonly short: Refused;
}

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
    if (left !== undefined) {
      return { node, hasReservations: node.reservations > 0, lacksPreferred, wastesNetworks, left };
    }
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

function shapeFitOf({ empty }: NodeShape, needs: PodNeeds, policy: UnpredictablePolicy): ShapeFit {
  const wholeCores = keepsWholeCores(needs, empty);
  return {
    unfit: unfitShape(needs, empty, policy),
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
    Number(a.hasReservations) - Number(b.hasReservations) ||
    Number(a.wastesNetworks) - Number(b.wastesNetworks) ||
    a.left - b.left
  );
}
