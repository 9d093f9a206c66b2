import type { CpuSet } from '../model/cpu-set.ts';
import { coarseNeedOf } from '../model/placement/coarse.ts';
import { type CandidateOrder, createCandidateOrder } from './candidate-order.ts';
import { type Fleet, NodeFlag } from './fleet.ts';
import { UNKNOWN } from './name-index.ts';
import type { NodeShape } from './node-shapes.ts';
import type { PodNeeds } from './pod-needs.ts';
import { nameAt, type ScannedNames } from './scanned-names.ts';
import { Texts } from './texts.ts';
import {
  judgeByCount,
  type NodeVerdict,
  type Refused,
  refuse,
  UNCHECKED,
  type UnpredictablePolicy,
  unfitShape,
} from './verdict.ts';

/** A node that may have the pod. */
export interface Answer {
  readonly node: string;
  /** Of its name among those offered. */
  readonly position: number;
  readonly score: number;
  readonly cpus: CpuSet | undefined;
}

export interface FilterOutcome {
  readonly names: ScannedNames;
  /** The nodes that are answered, and claimed if CPUs are at stake. */
  readonly answered: readonly Answer[];
  readonly texts: Texts;
  /**
   * By position of the name: the number of the text it is refused with; 0: not looked at, since enough others hold, or
   * named before; ANSWERED.
   */
  readonly codes: Int16Array;
}

const ANSWERED = -1;
const NOT_LOOKED_AT = 0;

/** What a filter is asked for. */
export interface FilterQuestion {
  readonly needs: PodNeeds;
  readonly names: ScannedNames;
  /** How many nodes to answer at the most, of so many that look as if they could take it. */
  readonly answersFor: (candidates: number) => number;
  /** Set where no node at all may take the pod for now. */
  readonly heldBack: string | undefined;
}

/** What a coarse fit refuses with. */
const TOO_FEW_CORES = refuse('too-few-whole-cores', 'too few free whole cores');
const TOO_FEW_CPUS = refuse('too-few-cpus', 'too few free CPUs');
const NOT_NEAR = refuse('network-elsewhere', 'no room on the NUMA nodes of a required network');

/** What is the same for every node of a shape. */
interface ShapeScreen {
  readonly id: number;
  readonly unfit: Refused | undefined;
  /** It has networks that the pod does not need. */
  readonly wastes: boolean;
  readonly short: Refused;
}

/** Judges shapes, each once. */
function screenerOf(needs: PodNeeds, policy: UnpredictablePolicy): (shape: NodeShape) => ShapeScreen {
  const screens = new Map<number, ShapeScreen>();
  return ({ id, empty }) => {
    let known = screens.get(id);
    if (known === undefined) {
      const whole = needs.wholeCores || empty.wholeCoresOnly;
      known = {
        id,
        unfit: unfitShape(needs, empty, policy),
        wastes: empty.networks.physnets.size > needs.networks.length,
        short: whole ? TOO_FEW_CORES : TOO_FEW_CPUS,
      };
      screens.set(id, known);
    }
    return known;
  };
}

/** Numbers texts as they come, remembering the last: thousands of nodes in a row are refused for one reason. */
function giverOf(texts: Texts): (refused: Refused) => number {
  const numbers = new Map<string, number>();
  return ({ kind, text }) => {
    const known = numbers.get(text);
    if (known !== undefined) return texts.again(known);
    const number = texts.give(kind, text);
    numbers.set(text, number);
    return number;
  };
}

/** What is known of single nodes beside the fleet's arrays. */
export interface NodeKnowledge {
  /** The exact prediction for a node that has reported. */
  readonly judge: (needs: PodNeeds, id: number) => NodeVerdict;
  readonly heldNeeds: (id: number, needs: PodNeeds) => readonly PodNeeds[];
  readonly dpuRefusal: (id: number) => Refused;
  readonly anyRefusedOnHost: () => boolean;
  /** Whether the node's own agent has refused a pod alike since the last report. */
  readonly refusedOnHost: (id: number, needs: PodNeeds) => boolean;
}

/**
 * Decides over many names: what rules a node out without looking at its CPUs, then a coarse fit, then the exact
 * prediction of the likeliest until enough hold. Arrays are used again by the next call, so an outcome is good until
 * then.
 */
export class Filter {
  readonly #fleet: Fleet;
  readonly #knowledge: NodeKnowledge;
  readonly #policy: UnpredictablePolicy;
  readonly #order: CandidateOrder = createCandidateOrder();
  #codes = new Int16Array(1024);
  #seen = new Uint32Array(1024);
  #call = 0;

  constructor(fleet: Fleet, knowledge: NodeKnowledge, policy: UnpredictablePolicy) {
    this.#fleet = fleet;
    this.#knowledge = knowledge;
    this.#policy = policy;
  }

  decide({ needs, names, answersFor, heldBack }: FilterQuestion): FilterOutcome {
    this.#reserve(names.count);
    const texts = new Texts();
    const answered: Answer[] = [];
    const codes = this.#codes;
    const screen = this.#screen(needs, heldBack, texts);
    const order = this.#order;
    order.begin(names.count);
    for (let k = 0; k < names.count; k++) {
      const id = names.ids[k]!;
      if (id !== UNKNOWN && this.#wasSeen(id)) {
        codes[k] = NOT_LOOKED_AT;
        continue;
      }
      codes[k] = screen(id, k);
    }
    const wanted = needs.exclusive ? answersFor(order.count) : Number.POSITIVE_INFINITY;
    for (const k of order.positions()) {
      if (answered.length >= wanted) break;
      const id = names.ids[k]!;
      const verdict = this.exact(needs, id);
      if (verdict.fits) {
        codes[k] = ANSWERED;
        answered.push({ node: nameAt(names, k), position: k, score: verdict.score, cpus: verdict.cpus });
      } else codes[k] = texts.give(verdict.kind, verdict.text);
    }
    return { names, answered, texts, codes };
  }

  /** Whether a node was among those offered in the last call. */
  wasOffered(id: number): boolean {
    return this.#seen[id] === this.#call;
  }

  /** The full verdict on one node. */
  verdict(needs: PodNeeds, id: number, heldBack: string | undefined): NodeVerdict {
    return this.#ruledOut(needs, id, heldBack) ?? this.exact(needs, id);
  }

  /** The verdict on a node that nothing rules out beforehand. */
  exact(needs: PodNeeds, id: number): NodeVerdict {
    if (!needs.exclusive) return UNCHECKED;
    const host = this.#fleet.host(id);
    if (host === undefined) return UNCHECKED;
    if (this.#fleet.has(id, NodeFlag.stale)) {
      return judgeByCount(needs, host, this.#knowledge.heldNeeds(id, needs));
    }
    return this.#knowledge.judge(needs, id);
  }

  /** What can be told of a node without its CPUs. */
  #ruledOut(needs: PodNeeds, id: number, heldBack: string | undefined): Refused | undefined {
    if (heldBack !== undefined) return refuse('owner-held', heldBack);
    const flags = id === UNKNOWN ? 0 : this.#fleet.flags(id);
    const shape = id === UNKNOWN ? undefined : this.#fleet.shape(id);
    if ((flags & NodeFlag.node) === 0 && shape === undefined) {
      return refuse('unknown-node', 'node is not known yet');
    }
    if (needs.dpu && (flags & NodeFlag.dpuHost) !== 0 && (flags & NodeFlag.dpuDead) !== 0) {
      return this.#knowledge.dpuRefusal(id);
    }
    if (!needs.exclusive) return undefined;
    if ((flags & NodeFlag.draCpu) !== 0) return refuse('dra-cpu', 'dra.cpu hands out the node’s CPUs too');
    if (this.#policy === 'refuse') {
      if (shape === undefined) return refuse('no-report', 'node does not report its topology');
      if ((flags & NodeFlag.stale) !== 0) return refuse('stale-report', 'node’s agent has stopped reporting');
    }
    if (this.#knowledge.refusedOnHost(id, needs)) {
      return refuse('refused-on-host', 'the node’s agent has refused such a pod');
    }
    return shape && unfitShape(needs, shape.empty, this.#policy);
  }

  /** Gives each node its code, or puts it among the candidates. What depends on the shape alone is asked once a shape. */
  #screen(needs: PodNeeds, heldBack: string | undefined, texts: Texts): (id: number, k: number) => number {
    const fleet = this.#fleet;
    const order = this.#order;
    const need = coarseNeedOf(needs);
    const fitOne = fleet.coarse.fitter(need);
    const fitAnywhere = need.networks.length === 0 ? fitOne : fleet.coarse.fitter({ ...need, networks: [] });
    const give = giverOf(texts);
    const special = heldBack !== undefined || !needs.exclusive || this.#knowledge.anyRefusedOnHost();
    const screenOf = screenerOf(needs, this.#policy);
    let last: ShapeScreen = { id: UNKNOWN, unfit: undefined, wastes: false, short: TOO_FEW_CPUS };

    const byRoom = (id: number, k: number, shape: NodeShape): number => {
      if (last.id !== shape.id) last = screenOf(shape);
      if (last.unfit) return give(last.unfit);
      const left = fitOne(id);
      if (left >= 0) {
        order.add(k, fleet.held(id) > 0, last.wastes, left);
        return NOT_LOOKED_AT;
      }
      return give(fitOne !== fitAnywhere && fitAnywhere(id) >= 0 ? NOT_NEAR : last.short);
    };

    return (id, k) => {
      const shape = id === UNKNOWN ? undefined : fleet.shape(id);
      if (shape !== undefined && !special && fleet.isPlain(id)) return byRoom(id, k, shape);
      const refused = this.#ruledOut(needs, id, heldBack);
      if (refused) return give(refused);
      if (shape !== undefined && needs.exclusive && !fleet.has(id, NodeFlag.stale)) return byRoom(id, k, shape);
      // Nothing is foretold of it, so it comes last.
      order.last(k);
      return NOT_LOOKED_AT;
    };
  }

  #wasSeen(id: number): boolean {
    if (this.#seen[id] === this.#call) return true;
    this.#seen[id] = this.#call;
    return false;
  }

  #reserve(count: number): void {
    if (count > this.#codes.length) this.#codes = new Int16Array(count * 2);
    const ids = this.#fleet.names.size;
    if (ids > this.#seen.length) this.#seen = new Uint32Array(ids * 2);
    this.#call = (this.#call + 1) >>> 0;
    if (this.#call === 0) {
      this.#seen.fill(0);
      this.#call = 1;
    }
  }
}
