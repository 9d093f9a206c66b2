/**
 * The order in which candidates are predicted: nodes with nothing in flight first, then those whose networks are of use,
 * then the fullest, so that large pods find empty nodes. One pass of a counting sort; equals stay in the order in which
 * the scheduler named them.
 */
export interface CandidateOrder {
  begin(names: number): void;
  /**
   * @param held pods in flight hold something there: a prediction has to try their orders, and a refusal is likelier
   * @param wastes it has networks that the pod does not need, which others may
   * @param left CPUs that would be left where the pod could go
   */
  add(position: number, held: boolean, wastes: boolean, left: number): void;
  /** A node of which nothing is foretold. */
  last(position: number): void;
  readonly count: number;
  positions(): Generator<number>;
}

/** Numbers of CPUs left that are told apart. */
const STEP = 256;
const LAST = 4 * STEP;
const KEYS = LAST + 1;

export function createCandidateOrder(): CandidateOrder {
  let positions = new Uint32Array(1024);
  let keys = new Uint16Array(1024);
  const heads = new Uint32Array(KEYS + 1);
  let sorted = new Uint32Array(1024);
  let count = 0;

  const put = (position: number, key: number) => {
    positions[count] = position;
    keys[count] = key;
    count++;
  };
  return {
    begin(names) {
      count = 0;
      if (names <= positions.length) return;
      positions = new Uint32Array(names * 2);
      keys = new Uint16Array(names * 2);
      sorted = new Uint32Array(names * 2);
    },
    add(position, held, wastes, left) {
      put(position, (held ? 2 * STEP : 0) + (wastes ? STEP : 0) + Math.min(left, STEP - 1));
    },
    last: (position) => put(position, LAST),
    get count() {
      return count;
    },
    *positions() {
      heads.fill(0);
      for (let i = 0; i < count; i++) heads[keys[i]! + 1]!++;
      for (let key = 0; key < KEYS; key++) heads[key + 1]! += heads[key]!;
      for (let i = 0; i < count; i++) sorted[heads[keys[i]!]!++] = positions[i]!;
      for (let i = 0; i < count; i++) yield sorted[i]!;
    },
  };
}
