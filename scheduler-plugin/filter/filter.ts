import { MASK_FALLS_BACK, maskUnheard } from '../../model/placement/mask-verdict.ts';
import {
  judgeByCount,
  NO_REPORT,
  type NodeVerdict,
  type Refused,
  refuse,
  STALE_REPORT,
  UNCHECKED,
  type UnpredictablePolicy,
  unfitShape,
} from '../../model/placement/verdict.ts';
import type { Place } from '../../model/reservations/reservation.ts';
import { type Fleet, NodeFlag } from '../cluster/fleet.ts';
import type { NodeShape } from '../cluster/node-shapes.ts';
import type { PodNeeds } from '../cluster/pod-needs.ts';
import { UNKNOWN } from '../wire/name-index.ts';
import type { ScannedNames } from '../wire/scanned-names.ts';
import { type CandidateOrder, createCandidateOrder, LAST_KEY } from './candidate-order.ts';
import { type CoarseFilter, createCoarseFilters, LOOK_CLOSER, NO_COARSE_FILTER } from './coarse-filter.ts';
import { createMaskVerdicts } from './mask-verdicts.ts';
import { RejectedNodeList, type RejectedNodes } from './rejected-nodes.ts';
import { createSpread, type Spread } from './spread.ts';
import { Texts } from './texts.ts';

/** A node that passed. */
export interface Answer extends Place {
  readonly node: string;
  /** The position of its name in the request. */
  readonly position: number;
}

export interface FilterOutcome {
  readonly names: ScannedNames;
  /** The nodes in the answer. They are reserved if the pod needs exclusive CPUs. */
  readonly answered: readonly Answer[];
  /** Refused names. The remaining names were not checked, because enough others passed, or are duplicates. */
  readonly refusals: RejectedNodes;
  readonly texts: Texts;
}

const MASK_ELSEWHERE = 'another node has the CPUs of the CPU mask';

/** Maximum predictions to find a node that fits among those that were not offered. */
const MOST_MISSED = 32;

/** The input of a filter call. */
export interface FilterQuestion {
  readonly needs: PodNeeds;
  readonly names: ScannedNames;
  /** Maximum number of nodes in the answer, given the number of candidates. */
  readonly answersFor: (candidates: number) => number;
  /** Topology keys for which the answer contains a node in each domain, however small it is otherwise. */
  readonly softKeys: readonly string[];
  /** Set if no node may take the pod for now. */
  readonly backingOff: string | undefined;
}

/** Data about single nodes that is not in the fleet's arrays. */
export interface NodeKnowledge {
  /** The exact prediction for a node that has reported. */
  readonly judge: (needs: PodNeeds, id: number) => NodeVerdict;
  readonly assumedNeeds: (id: number, needs: PodNeeds) => readonly PodNeeds[];
  readonly dpuRefusal: (id: number) => Refused;
  readonly anyRefusedOnHost: () => boolean;
  /** Whether the node's own agent has refused a pod with equal needs since the last report. */
  readonly refusedOnHost: (id: number, needs: PodNeeds) => boolean;
}

/**
 * Decides on many names: first the facts that rule a node out regardless of its CPUs, then a coarse fit, then the exact
 * prediction of the best candidates until enough have passed. The next call reuses the arrays, so an outcome is valid
 * until then.
 */
export class Filter {
  readonly #fleet: Fleet;
  readonly #knowledge: NodeKnowledge;
  readonly #policy: UnpredictablePolicy;
  readonly #screenFor: (needs: PodNeeds) => CoarseFilter;
  readonly #maskVerdictOn: ReturnType<typeof createMaskVerdicts>;
  readonly #order: CandidateOrder = createCandidateOrder();
  readonly #refusals = new RejectedNodeList();
  /** The last call that offered the node, by its number. */
  #seen = new Float64Array(1024);
  #call = 0;

  constructor(fleet: Fleet, knowledge: NodeKnowledge, policy: UnpredictablePolicy) {
    this.#fleet = fleet;
    this.#knowledge = knowledge;
    this.#policy = policy;
    this.#screenFor = createCoarseFilters(fleet, policy);
    this.#maskVerdictOn = createMaskVerdicts(fleet);
  }

  decide({ needs, names, answersFor, softKeys, backingOff }: FilterQuestion): FilterOutcome {
    const texts = new Texts();
    this.#sift(needs, names, backingOff, texts);
    const answered: Answer[] = [];
    const refusals = this.#refusals;
    const order = this.#order;
    const wanted = needs.exclusive ? answersFor(order.count) : Number.POSITIVE_INFINITY;
    const spread = this.#spreadOver(softKeys);
    const keepsMask = this.#someKeepsMask(needs, names);
    let count = 0;
    const isDone = () => count >= wanted && spread.complete;
    const decideOn = (position: number) => {
      const id = names.ids[position]!;
      if (keepsMask && this.#fallsBack(needs, id)) {
        refusals.add(position, texts.give('mask-elsewhere', MASK_ELSEWHERE));
        return;
      }
      const shares = this.#fleet.sharesOn(id, needs);
      if (count >= wanted && !shares && !spread.wants(id)) return;
      const verdict = this.exact(needs, id);
      spread.tried(id, verdict.fits);
      if (verdict.fits) {
        const { score, cpus } = verdict;
        if (!shares) count++;
        answered.push({ node: this.#fleet.nameOf(id), position, score, cpus });
      } else refusals.add(position, texts.give(verdict.kind, verdict.text));
    };
    for (const position of order.ranked()) {
      if (isDone()) break;
      decideOn(position);
    }
    // Nodes that would run the pod on shared CPUs are among these: they cost no prediction, so each is in the answer.
    for (const position of order.unranked()) {
      if (!needs.mayShare && isDone()) break;
      decideOn(position);
    }
    return { names, answered, refusals, texts };
  }

  #spreadOver(keys: readonly string[]): Spread {
    return createSpread(keys.map((key) => this.#fleet.domains.of(key)));
  }

  /** Refuses the nodes that need no prediction, and sorts the others. */
  #sift(needs: PodNeeds, names: ScannedNames, backingOff: string | undefined, texts: Texts): void {
    const { ids, count } = names;
    const [order, refusals] = [this.#order, this.#refusals];
    order.begin(count);
    refusals.begin(count);
    const call = this.#beginCall();
    const seen = this.#seen;
    const coarse = needs.exclusive ? this.#screenFor(needs) : NO_COARSE_FILTER;
    const { codes } = coarse;
    const special = backingOff !== undefined || !needs.exclusive || this.#knowledge.anyRefusedOnHost();
    /** The text of a refusal, by its code. */
    const numbers = new Map<number, number>();
    const enter = (position: number, code: number) => {
      if (code >= 0) order.add(position, code);
      else {
        const known = numbers.get(code);
        const { kind, text } = coarse.refusalOf(code);
        const number = known === undefined ? texts.give(kind, text) : texts.again(known);
        if (known === undefined) numbers.set(code, number);
        refusals.add(position, number);
      }
    };
    for (let position = 0; position < count; position++) {
      const id = ids[position]!;
      if (id !== UNKNOWN) {
        if (seen[id] === call) continue;
        seen[id] = call;
      }
      const code = id === UNKNOWN || special ? LOOK_CLOSER : codes[id]!;
      if (code !== LOOK_CLOSER) {
        enter(position, code);
        continue;
      }
      const refused = this.#ruledOut(needs, id, backingOff);
      if (refused) refusals.add(position, texts.give(refused.kind, refused.text));
      else enter(position, this.#isForetold(needs, id) ? coarse.roomOn(id) : LAST_KEY);
    }
  }

  /** Whether the node's CPUs are known. */
  #isForetold(needs: PodNeeds, id: number): boolean {
    return needs.exclusive && this.#fleet.trusted(id) !== undefined;
  }

  /**
   * Finds a node that was not offered in the last call and would accept the pod: kube-scheduler stops its search when
   * it has found enough nodes that suit it.
   */
  missed(needs: PodNeeds): string | undefined {
    const { codes } = needs.exclusive ? this.#screenFor(needs) : NO_COARSE_FILTER;
    let asked = 0;
    for (const id of this.#fleet.ids()) {
      if (this.#seen[id] === this.#call || !this.#fleet.has(id, NodeFlag.node)) continue;
      if (needs.exclusive && codes[id]! < LOOK_CLOSER) continue;
      if (this.verdict(needs, id, undefined).fits) return this.#fleet.names.nameOf(id);
      if (++asked === MOST_MISSED) break;
    }
    return undefined;
  }

  /** The full verdict on one node. */
  verdict(needs: PodNeeds, id: number, backingOff: string | undefined): NodeVerdict {
    return this.#ruledOut(needs, id, backingOff) ?? this.exact(needs, id);
  }

  /** The verdict on a node that is not ruled out. */
  exact(needs: PodNeeds, id: number): NodeVerdict {
    if (!needs.exclusive) return this.#fallsBack(needs, id) ? MASK_FALLS_BACK : UNCHECKED;
    if (this.#shapeOf(id) === undefined) return UNCHECKED;
    if (!this.#fleet.has(id, NodeFlag.stale)) return this.#knowledge.judge(needs, id);
    const host = this.#fleet.host(id);
    return host === undefined ? UNCHECKED : judgeByCount(needs, host, this.#knowledge.assumedNeeds(id, needs));
  }

  /** The refusal of a node for reasons other than its CPUs, if any. */
  #ruledOut(needs: PodNeeds, id: number, backingOff: string | undefined): Refused | undefined {
    if (backingOff !== undefined) return refuse('owner-backoff', backingOff);
    const flags = id === UNKNOWN ? 0 : this.#fleet.flags(id);
    const shape = this.#shapeOf(id);
    if ((flags & NodeFlag.node) === 0 && shape === undefined) {
      return refuse('unknown-node', 'node is not known yet');
    }
    if (needs.dpu && (flags & NodeFlag.dpuHost) !== 0 && (flags & NodeFlag.dpuDead) !== 0) {
      return this.#knowledge.dpuRefusal(id);
    }
    if (!needs.exclusive) return this.#maskRefusal(needs, id, flags);
    // Any report proves this, however old it is: a change of the kubelet's policy requires a drained node.
    if ((flags & NodeFlag.quarantined) === 0 && this.#fleet.sharesOn(id, needs)) return undefined;
    if ((flags & NodeFlag.draCpu) !== 0) return refuse('dra-cpu', 'dra.cpu assigns the node’s CPUs, too');
    if (this.#policy === 'refuse') {
      if (shape === undefined || (flags & NodeFlag.stale) !== 0) return unheard(flags, shape === undefined);
    }
    if (this.#knowledge.refusedOnHost(id, needs)) {
      return refuse('refused-on-host', 'the node’s agent has refused such a pod');
    }
    return shape && unfitShape(needs, shape.empty, this.#policy);
  }

  /** A mask needs a running agent, so no policy accepts a node without one. */
  #maskRefusal({ mask }: PodNeeds, id: number, flags: number): Refused | undefined {
    if (mask === undefined) return undefined;
    const reported = this.#shapeOf(id) !== undefined;
    if (!reported || (flags & NodeFlag.stale) !== 0) return maskUnheard(unheard(flags, !reported));
    const verdict = this.#maskVerdictOn(mask, id);
    return verdict.fits ? undefined : verdict;
  }

  #fallsBack({ mask }: PodNeeds, id: number): boolean {
    return mask?.fixMismatch === true && this.#maskVerdictOn(mask, id) === MASK_FALLS_BACK;
  }

  /** Whether any candidate can keep the mask. Only if none can, nodes may use `all` instead. */
  #someKeepsMask(needs: PodNeeds, { ids }: ScannedNames): boolean {
    if (needs.mask?.fixMismatch !== true) return false;
    for (const position of this.#order.positions()) if (!this.#fallsBack(needs, ids[position]!)) return true;
    return false;
  }

  /** The shape of a node with a plausible report. */
  #shapeOf(id: number): NodeShape | undefined {
    return id === UNKNOWN || this.#fleet.has(id, NodeFlag.quarantined) ? undefined : this.#fleet.shape(id);
  }

  /** Begins a call and returns its number, which is higher than those of earlier calls. */
  #beginCall(): number {
    const ids = this.#fleet.names.size;
    if (ids > this.#seen.length) this.#seen = new Float64Array(ids * 2);
    return ++this.#call;
  }
}

function unheard(flags: number, neverReported: boolean): Refused {
  if ((flags & NodeFlag.quarantined) !== 0)
    return refuse('quarantined', 'node’s report is quarantined; see its Events');
  return neverReported ? NO_REPORT : STALE_REPORT;
}
