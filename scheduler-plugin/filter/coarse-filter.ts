import { coarseNeedOf } from '../../model/placement/coarse.ts';
import { cellsOfNetwork, keepsWholeCores, type PlacementNeeds, sharesOn } from '../../model/placement/needs.ts';
import { type Refused, refuse, type UnpredictablePolicy, unfitShape } from '../../model/placement/verdict.ts';
import type { Fleet } from '../cluster/fleet.ts';
import type { NodeShape } from '../cluster/node-shapes.ts';
import type { PodNeeds } from '../cluster/pod-needs.ts';
import { candidateKey, LAST_KEY } from './candidate-order.ts';

/** The coarse facts about every node for pods with equal needs, without an exact prediction. */
export interface CoarseFilter {
  /** By the node's number: a candidate's key (see CandidateOrder), LOOK_CLOSER, or a code for `refusalOf`. */
  readonly codes: Int32Array;
  refusalOf(code: number): Refused;
  /** The code of a node that has reported, by its free CPUs alone, after the closer check. */
  roomOn(id: number): number;
}

/** The node has not reported, or needs a closer check for another reason. */
export const LOOK_CLOSER = -1;
const FIRST_REFUSAL = -2;

/** For pods without CPUs of their own, which need a check of each node. */
export const NO_COARSE_FILTER: CoarseFilter = {
  codes: new Int32Array(0),
  refusalOf: () => {
    throw new RangeError('no node was filtered');
  },
  roomOn: () => LOOK_CLOSER,
};

/** The refusals of a coarse fit. */
const TOO_FEW_CORES = refuse('too-few-whole-cores', 'too few free whole cores');
const TOO_FEW_CPUS = refuse('too-few-cpus', 'too few free CPUs');
const NOT_NEAR = refuse('network-elsewhere', 'no room on the NUMA nodes of a required network');

/**
 * Maximum kinds of pods with cached filters: launchers have few shapes. A coarse filter costs four bytes for each node.
 */
const KEPT = 16;

/**
 * Caches coarse filters by kind of pod between calls; a later call checks only nodes that have changed since. A coarse
 * filter is valid until the next one is requested.
 */
export function createCoarseFilters(fleet: Fleet, policy: UnpredictablePolicy): (needs: PodNeeds) => CoarseFilter {
  const kept = new Map<string, CachedCoarseFilter>();
  return (needs) => {
    let coarse = kept.get(needs.key);
    if (coarse === undefined) {
      coarse = new CachedCoarseFilter(fleet, judgeOf(fleet, policy, needs));
      const [oldest] = kept.keys();
      if (kept.size >= KEPT && oldest !== undefined) kept.delete(oldest);
      kept.set(needs.key, coarse);
    }
    coarse.catchUp();
    return coarse;
  };
}

class CachedCoarseFilter implements CoarseFilter {
  codes = new Int32Array(0);
  readonly #fleet: Fleet;
  readonly #judge: (id: number) => number | Refused;
  readonly #refusals: Refused[] = [];
  #seen = Number.NEGATIVE_INFINITY;

  constructor(fleet: Fleet, judge: (id: number) => number | Refused) {
    this.#fleet = fleet;
    this.#judge = judge;
  }

  roomOn(id: number): number {
    return this.#codeOf(id);
  }

  refusalOf(code: number): Refused {
    return this.#refusals[FIRST_REFUSAL - code]!;
  }

  catchUp(): void {
    const { changes, names } = this.#fleet;
    if (names.size > this.codes.length) {
      this.codes = new Int32Array(names.size * 2);
      this.#seen = Number.NEGATIVE_INFINITY;
    }
    const changed = changes.since(this.#seen);
    if (changed === undefined) for (let id = 0; id < names.size; id++) this.#look(id);
    else for (const id of changed) this.#look(id);
    this.#seen = changes.count;
  }

  #look(id: number): void {
    this.codes[id] = this.#fleet.isPlain(id) ? this.#codeOf(id) : LOOK_CLOSER;
  }

  #codeOf(id: number): number {
    const verdict = this.#judge(id);
    if (typeof verdict === 'number') return verdict;
    let at = this.#refusals.findIndex(({ text }) => text === verdict.text);
    if (at < 0) at = this.#refusals.push(verdict) - 1;
    return FIRST_REFUSAL - at;
  }
}

/** Judges a node by its shape, then by its free CPUs. Each shape is judged once. */
function judgeOf(fleet: Fleet, policy: UnpredictablePolicy, needs: PodNeeds): (id: number) => number | Refused {
  const whole = fittersOf(fleet, needs);
  const threads = needs.wholeCores ? fittersOf(fleet, { ...needs, wholeCores: false }) : whole;
  const shapes = new WeakMap<NodeShape, ShapeVerdict>();

  const verdictOf = (shape: NodeShape): ShapeVerdict => {
    const known = shapes.get(shape) ?? judgeShape(shape, needs, policy);
    shapes.set(shape, known);
    return known;
  };
  return (id) => {
    const shape = fleet.shape(id);
    if (shape === undefined) return LOOK_CLOSER;
    const { unfit, lacks, wastes, short, shares, keepsCores } = verdictOf(shape);
    if (unfit) return unfit;
    if (shares) return LAST_KEY;
    const { roomFor, roomAnywhere } = keepsCores ? whole : threads;
    const left = roomFor(id);
    if (left >= 0) return candidateKey({ lacks, assumed: fleet.assumed(id) > 0, wastes, left });
    return roomFor !== roomAnywhere && roomAnywhere(id) >= 0 ? NOT_NEAR : short;
  };
}

function fittersOf({ coarse }: Fleet, needs: PlacementNeeds) {
  const need = coarseNeedOf(needs);
  const roomFor = coarse.fitter(need);
  return { roomFor, roomAnywhere: need.networks.length === 0 ? roomFor : coarse.fitter({ ...need, networks: [] }) };
}

interface ShapeVerdict {
  readonly unfit: Refused | undefined;
  /** The node lacks a network that the pod prefers. */
  readonly lacks: boolean;
  /** The pod would run on shared CPUs, which need no prediction. */
  readonly shares: boolean;
  /** The promise of whole cores holds there. */
  readonly keepsCores: boolean;
  /** The node has networks that the pod does not need. */
  readonly wastes: boolean;
  readonly short: Refused;
}

function judgeShape({ empty }: NodeShape, needs: PodNeeds, policy: UnpredictablePolicy): ShapeVerdict {
  return {
    unfit: unfitShape(needs, empty, policy),
    lacks: needs.networks.some((need) => need.affinity === 'preferred' && !cellsOfNetwork(empty.networks, need)),
    shares: sharesOn(needs, empty),
    keepsCores: keepsWholeCores(needs, empty),
    wastes: empty.networks.physnets.size > needs.networks.length,
    short: keepsWholeCores(needs, empty) || empty.wholeCoresOnly ? TOO_FEW_CORES : TOO_FEW_CPUS,
  };
}
