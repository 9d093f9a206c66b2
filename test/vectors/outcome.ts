/** How the cases of one vector file came out. */
export interface Outcome {
  readonly ran: number;
  readonly passed: number;
  readonly skipped: readonly { readonly reason: string; readonly count: number }[];
  /** One line for each case that failed: its id, what was expected, what came. */
  readonly failures: readonly string[];
}

/** Reads another file of the same folder, for adapters whose cases refer to one. */
export type Load = (file: string) => unknown;

/** Runs all cases of one file; `content` is the parsed JSON. */
export type Adapter = (content: unknown, load: Load) => Outcome;

/** A case that is left out, and why. */
export class Skip {
  readonly reason: string;

  constructor(reason: string) {
    this.reason = reason;
  }
}

/** The outcome of one case: nothing, a failure's text, or a reason for leaving it out. */
export type Verdict = undefined | string | Skip;

/** Runs `check` on every case and counts. An exception is a failure of that case. */
export function collect<T>(
  cases: readonly T[],
  nameOf: (item: T, index: number) => string,
  check: (item: T) => Verdict,
): Outcome {
  let passed = 0;
  const failures: string[] = [];
  const skipped = new Map<string, number>();
  cases.forEach((item, index) => {
    const verdict = guarded(check, item);
    if (verdict instanceof Skip) skipped.set(verdict.reason, (skipped.get(verdict.reason) ?? 0) + 1);
    else if (verdict === undefined) passed++;
    else failures.push(`${nameOf(item, index)}: ${verdict}`);
  });
  return {
    ran: passed + failures.length,
    passed,
    skipped: [...skipped].map(([reason, count]) => ({ reason, count })),
    failures,
  };
}

/** Adds the outcomes of the parts of one file. */
export function combined(outcomes: readonly Outcome[]): Outcome {
  return {
    ran: outcomes.reduce((sum, { ran }) => sum + ran, 0),
    passed: outcomes.reduce((sum, { passed }) => sum + passed, 0),
    skipped: outcomes.flatMap(({ skipped }) => skipped),
    failures: outcomes.flatMap(({ failures }) => failures),
  };
}

/** A failure's text unless the two are equal as JSON. */
export function differs(actual: unknown, expected: unknown): string | undefined {
  const [got, wanted] = [JSON.stringify(actual), JSON.stringify(expected)];
  return got === wanted ? undefined : `expected ${wanted}, got ${got}`;
}

function guarded<T>(check: (item: T) => Verdict, item: T): Verdict {
  try {
    return check(item);
  } catch (error) {
    return error instanceof Error ? (error.stack ?? error.message) : String(error);
  }
}
