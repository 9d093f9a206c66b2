/**
 * The order of candidates for prediction: nodes that have the networks which the pod prefers, then those without pods
 * in flight, then those without networks that the pod does not need, then the fullest, so that large pods find empty
 * nodes. Equal candidates keep the order of the scheduler's names.
 */
export interface CandidateOrder {
  begin(names: number): void;
  /** @param key from `candidateKey`, or LAST_KEY */
  add(position: number, key: number): void;
  readonly count: number;
  /** All positions, ranked ones first. */
  positions(): Generator<number>;
  /** Positions with a key below LAST_KEY, in the order of their keys. */
  ranked(): Generator<number>;
  /** Positions with LAST_KEY. */
  unranked(): Generator<number>;
}

/** The number of distinguished values of remaining CPUs. */
const STEP = 256;
/** The key of a node without a prediction. */
export const LAST_KEY = 8 * STEP;

/** The properties of a candidate that determine its position in the order. */
export interface Candidate {
  /** The node lacks a network that the pod prefers. */
  readonly lacks: boolean;
  /** Pods in flight hold CPUs there: a prediction has to try their orders, and is more likely to be a refusal. */
  readonly assumed: boolean;
  /** It has networks that the pod does not need and that others may need. */
  readonly wastes: boolean;
  /** Remaining CPUs in the cells that the pod could use. */
  readonly left: number;
}

/** The position of a candidate in the order: a lower key comes first. Never negative. */
export function candidateKey({ lacks, assumed, wastes, left }: Candidate): number {
  return (lacks ? 4 * STEP : 0) + (assumed ? 2 * STEP : 0) + (wastes ? STEP : 0) + Math.min(left, STEP - 1);
}

const NONE = -1;

/** Keeps a list for each key instead of sorting: of thousands of candidates, only the first few are read. */
export function createCandidateOrder(): CandidateOrder {
  const heads = new Int32Array(LAST_KEY + 1);
  const tails = new Int32Array(LAST_KEY + 1);
  /** The next position with the same key, by position. */
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
