import { cut } from '../../model/errors.ts';
import { type RefusalKind, type Refused, refuse, type UnpredictablePolicy } from '../../model/placement/verdict.ts';
import type { Place } from '../../model/reservations/reservation.ts';
import { type ClusterNode, type Fleet, sharesCpusOn } from '../cluster/fleet.ts';
import type { PodNeeds } from '../cluster/pod-needs.ts';
import { type Candidate, CoarseFilter, compareCandidates, createSpread } from './coarse-filter.ts';
import { type NodeVerdicts, plausibleShape, UNKNOWN_NODE } from './node-verdicts.ts';

export interface FilterAnswer extends Place {
  readonly node: string;
}

export interface FilterOutcome {
  readonly offered: number;
  /** Reserved if the pod needs exclusive CPUs. */
  readonly answers: readonly FilterAnswer[];
  readonly refusals: Refusals;
}

export interface FilterCall {
  readonly needs: PodNeeds;
  readonly names: readonly string[];
  readonly answersFor: (candidates: number) => number;
  /** Topology keys for which the answer contains a node in each domain, however small it is otherwise. */
  readonly softKeys: readonly string[];
}

const MASK_ELSEWHERE = refuse('mask-elsewhere', 'another node has the CPUs of the CPU mask');
const MAX_NOT_OFFERED_PREDICTIONS = 32;
/** If the pod prefers a network, so that those near it come first. */
const COMPARED_NODES = 64;

/** First the facts that do not depend on CPUs, then a count of free CPUs, then predictions until enough fit. */
export class Filter {
  readonly #fleet: Fleet;
  readonly #verdicts: NodeVerdicts;
  readonly #policy: UnpredictablePolicy;

  constructor(fleet: Fleet, verdicts: NodeVerdicts, policy: UnpredictablePolicy) {
    this.#fleet = fleet;
    this.#verdicts = verdicts;
    this.#policy = policy;
  }

  filter({ needs, names, answersFor, softKeys }: FilterCall): FilterOutcome {
    const refusals = new Refusals();
    const { ranked, unranked } = this.#candidates(needs, names, refusals);
    ranked.sort(compareCandidates);
    const limit = needs.exclusive ? answersFor(ranked.length + unranked.length) : Number.POSITIVE_INFINITY;
    const answers = this.#predict({ needs, ranked, unranked, limit, softKeys, refusals });
    return { offered: names.length, answers, refusals };
  }

  #candidates(needs: PodNeeds, names: readonly string[], refusals: Refusals) {
    const coarse = new CoarseFilter(needs, this.#policy);
    const ranked: Candidate[] = [];
    const unranked: ClusterNode[] = [];
    for (const name of names) {
      const node = this.#fleet.get(name);
      if (node === undefined) {
        refusals.add(name, UNKNOWN_NODE);
        continue;
      }
      const check = this.#coarseCheck(coarse, needs, node);
      if (check === undefined) unranked.push(node);
      // The node's own string, not the call's: the reply's keys are then the same strings in each call.
      else if ('fits' in check) refusals.add(node.name, check);
      else ranked.push(check);
    }
    return { ranked, unranked };
  }

  /** @returns undefined for a node that may fit and whose free CPUs are not known, or do not matter */
  #coarseCheck(coarse: CoarseFilter, needs: PodNeeds, node: ClusterNode): Candidate | Refused | undefined {
    const refused = this.#verdicts.refusal(needs, node);
    if (refused !== undefined) return refused;
    const shape = plausibleShape(node);
    if (!needs.exclusive || shape === undefined) return undefined;
    return node.stale ? coarse.unfit(shape) : coarse.check(node, shape);
  }

  #predict({ needs, ranked, unranked, limit, softKeys, refusals }: Prediction): FilterAnswer[] {
    const answers: SpreadAnswer[] = [];
    const prefersNetworks = needs.networks.some(({ affinity }) => affinity === 'preferred');
    const preferred = prefersNetworks ? ranked.filter(({ lacksPreferred }) => !lacksPreferred) : [];
    const comparable = new Set(preferred.map(({ node }) => node));
    const spread = createSpread(softKeys, this.#fleet);
    const answered = new Set<ClusterNode>();
    /** Nodes that passed, without those where the pod shares CPUs: they cost no prediction, so each is in the answer. */
    let passed = 0;
    const hasEnough = (node: ClusterNode): boolean =>
      passed >= (comparable.has(node) ? Math.max(limit, COMPARED_NODES) : limit);
    const check = (node: ClusterNode): void => {
      // A name that the call has twice must not be in the answer twice.
      if (answered.has(node)) return;
      const shares = sharesCpusOn(node, needs);
      const spreads = spread.wants(node);
      if (hasEnough(node) && !shares && !spreads) return;
      const verdict = this.#verdicts.exact(needs, node);
      spread.tried(node, verdict.fits);
      if (!verdict.fits) {
        refusals.add(node.name, verdict);
        return;
      }
      answered.add(node);
      if (!shares) passed++;
      answers.push({ node: node.name, score: verdict.score, cpus: verdict.cpus, spreads: shares || spreads });
    };
    for (const { node } of ranked) {
      if (hasEnough(node) && spread.isComplete()) break;
      check(node);
    }
    // Only here are nodes on which the pod shares CPUs, and pods with a CPU mask, which have no exclusive CPUs.
    for (const node of this.#keepingMask(needs, unranked, refusals)) {
      if (!needs.mayShare && hasEnough(node) && spread.isComplete()) break;
      check(node);
    }
    return prefersNetworks ? highestScores(answers, limit) : answers;
  }

  /** Only if none can keep the mask, nodes may use `all` instead. */
  #keepingMask(needs: PodNeeds, candidates: readonly ClusterNode[], refusals: Refusals): readonly ClusterNode[] {
    if (needs.mask?.fixMismatch !== true) return candidates;
    const keeping = candidates.filter((node) => !this.#verdicts.fallsBack(needs, node));
    if (keeping.length === 0) return candidates;
    for (const node of candidates) if (this.#verdicts.fallsBack(needs, node)) refusals.add(node.name, MASK_ELSEWHERE);
    return keeping;
  }

  /** kube-scheduler stops its search when it has found enough nodes that suit it. */
  missed(needs: PodNeeds, offered: readonly string[]): string | undefined {
    const coarse = new CoarseFilter(needs, this.#policy);
    const names = new Set(offered);
    let predictions = 0;
    for (const node of this.#fleet.nodes()) {
      if (!node.exists || names.has(node.name)) continue;
      const check = this.#coarseCheck(coarse, needs, node);
      const isRefused = check !== undefined && 'fits' in check;
      // Only counting CPUs is cheap enough for every node: a CPU mask is compared with those of the node.
      if (isRefused && needs.exclusive) continue;
      if (!isRefused && this.#verdicts.exact(needs, node).fits) return node.name;
      if (++predictions === MAX_NOT_OFFERED_PREDICTIONS) return undefined;
    }
    return undefined;
  }
}

interface Prediction extends Pick<FilterCall, 'needs' | 'softKeys'> {
  readonly ranked: readonly Candidate[];
  readonly unranked: readonly ClusterNode[];
  readonly limit: number;
  readonly refusals: Refusals;
}

type SpreadAnswer = FilterAnswer & { readonly spreads: boolean };

/** And those for soft constraints. */
function highestScores(answers: readonly SpreadAnswer[], limit: number): FilterAnswer[] {
  const byScore = answers.toSorted((a, b) => b.score - a.score);
  return byScore.filter(({ spreads }, position) => spreads || position < limit);
}

/** kube-scheduler counts nodes by text and truncates long lists of texts, so an answer has at most this many. */
const MAX_TEXTS = 8;

/** As JSON, once for each node, perhaps with a tenant's name: 5,000 nodes with names of 63 characters take 1 MiB. */
const MAX_TEXT_BYTES = 140;

const FALLBACK: Readonly<Partial<Record<RefusalKind, string>>> = { dpu: 'DPU not ready for too long' };
const OTHER = 'refused for another reason; see /explain';
/** Texts that replace others: each needs a slot of its own. */
const FALLBACKS = Object.keys(FALLBACK).length + 1;

type RefusalText = Readonly<Pick<Refused, 'kind' | 'text'>> & { nodes: number };

/** Texts with numbers can be many: the text of the kind without a number then replaces them. */
export class Refusals {
  readonly #texts = new Map<string, RefusalText>();
  /** Without a prototype: V8 adds keys to such an object without a hidden class for each, and `__proto__` is a name. */
  readonly #byNode: Record<string, string> = Object.create(null) as Record<string, string>;

  get texts(): readonly RefusalText[] {
    return [...this.#texts.values()];
  }

  /** In the order of refusal. */
  get byNode(): Readonly<Record<string, string>> {
    return this.#byNode;
  }

  add(node: string, { kind, text }: Pick<Refused, 'kind' | 'text'>): void {
    // A name that the call has twice.
    if (this.#byNode[node] !== undefined) return;
    const counted = this.#textOf(kind, text);
    counted.nodes++;
    this.#byNode[node] = counted.text;
  }

  #textOf(kind: RefusalKind, text: string): RefusalText {
    const same = this.#texts.get(text);
    if (same !== undefined) return same;
    const fallback = FALLBACK[kind] ?? OTHER;
    if (text !== fallback && this.#texts.size >= MAX_TEXTS - FALLBACKS) return this.#textOf(kind, fallback);
    const added: RefusalText = { kind, text: bounded(text), nodes: 0 };
    this.#texts.set(text, added);
    return added;
  }
}

function bounded(text: string): string {
  let short = cut(text, MAX_TEXT_BYTES);
  while (Buffer.byteLength(JSON.stringify(short)) > MAX_TEXT_BYTES) short = cut(short, short.length - 1);
  return short;
}
