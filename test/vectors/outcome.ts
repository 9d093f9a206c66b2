/** Reads another file of the same folder, for adapters whose cases refer to one. */
export type Load = (file: string) => unknown;

/** All cases of one file; `content` is the parsed JSON. */
export type Adapter = (content: unknown, load: Load) => readonly VectorCase[];

/** An exception of the check is a failure of the case. */
export interface VectorCase {
  readonly name: string;
  readonly check: () => Verdict;
}

/** The outcome of one case: nothing, a failure's text, or a reason for leaving it out. */
export type Verdict = undefined | string | { readonly skip: string };

/** A failure's text unless the two are equal as JSON. */
export function differs(actual: unknown, expected: unknown): string | undefined {
  const [got, wanted] = [JSON.stringify(actual), JSON.stringify(expected)];
  return got === wanted ? undefined : `expected ${wanted}, got ${got}`;
}
