/**
 * The order in which candidates are predicted: nodes that have the networks the pod prefers first, then those with nothing
 * in flight, then those whose networks are of use, then the fullest, so that large pods find empty nodes. Equals stay in the
 * order in which the scheduler named them.
 */
export interface CandidateOrder {
  begin(names: number): void;
  /** @param key of `candidateKey`, or LAST_KEY */
  add(position: number, key: number): void;
  readonly count: number;
  /** All, ranked ones first. */
  positions(): Generator<number>;
  /** Those with a key before LAST_KEY, in its order. */
  ranked(): Generator<number>;
  /** Those with LAST_KEY. */
  unranked(): Generator<number>;
}

/** Numbers of CPUs left that are distinguished. */
const STEP = 256;
/** Of a node of which nothing is predicted. */
export const LAST_KEY = 8 * STEP;

/** What of a candidate decides where it stands in the order. */
export interface Candidate {
  /** A network that the pod prefers is not on the node. */
  readonly lacks: boolean;
  /** Pods in flight hold something there: a prediction has to try their orders, and a refusal is likelier. */
  readonly assumed: boolean;
  /** It has networks that the pod does not need, which others may. */
  readonly wastes: boolean;
  /** CPUs that would be left where the pod could go. */
  readonly left: number;
}

/** Where a candidate stands in the order: the lower the earlier, never negative. */
export function candidateKey({ lacks, assumed, wastes, left }: Candidate): number {
  return (lacks ? 4 * STEP : 0) + (assumed ? 2 * STEP : 0) + (wastes ? STEP : 0) + Math.min(left, STEP - 1);
}

const NONE = -1;

/** A list for each key: of thousands of candidates only the first few are ever asked for, so nothing is sorted. */
export function createCandidateOrder(): CandidateOrder {
  const heads = new Int32Array(LAST_KEY + 1);
  const tails = new Int32Array(LAST_KEY + 1);
  /** By position: the next of the same key. */
  let next = new Int32Array(1024);
  let count = 0;
  function* of(key: number): Generator<number> {
    for (let position = heads[key]!; position !== NONE; position = next[position]!) yield position;
  }
  return {
    begin(names) {
      count = 0;
      heads.fill(NONE);
      if (names > next.length) next = new Int32Array(names * 2);
    },
    add(position, key) {
      if (heads[key] === NONE) heads[key] = position;
      else next[tails[key]!] = position;
      tails[key] = position;
      next[position] = NONE;
      count++;
    },
    get count() {
      return count;
    },
    *positions() {
      yield* this.ranked();
      yield* this.unranked();
    },
    *ranked() {
      for (let key = 0; key < LAST_KEY; key++) if (heads[key] !== NONE) yield* of(key);
    },
    unranked: () => of(LAST_KEY),
  };
}
