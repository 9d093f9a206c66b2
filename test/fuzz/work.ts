import fc from 'fast-check';
import type { WorkCounter } from '../support/work-counter.ts';
import type { Fed, Target } from './target.ts';

/** The work for the inputs of a target. */
export interface Worked {
  readonly runs: number;
  /** The observed maximum of blocks per byte for an input of at least LONG bytes. */
  readonly perByte: number;
  /** The largest share of its limit that an input used, for inputs that were measured singly. */
  readonly share: number;
  readonly failure: { readonly input: unknown; readonly why: string } | undefined;
}

export interface WorkOptions {
  readonly seed: number;
  readonly runs: number;
  readonly seconds?: number;
}

/** Inputs that are generated at a time. */
const CHUNK = 1000;
/** From this many bytes on, the fixed cost of an input no longer matters. */
const LONG = 1024;
/** The expected share of the smallest limit of a batch. */
const EXPECTED = 0.6;

/** An input with its measurements. */
interface Weighed<I> {
  readonly input: I;
  readonly fed: Fed;
  readonly bound: number;
}

/**
 * Checks the work of each input against its limit, in executed code blocks. Reading the counters takes milliseconds, so
 * inputs are measured in batches. A batch whose sum is within the smallest limit of its inputs has none above its own;
 * any other batch is halved and measured again, down to the single input.
 */
export async function countWork<I>(
  target: Target<I>,
  counter: WorkCounter,
  { seed, runs, seconds = Number.POSITIVE_INFINITY }: WorkOptions,
): Promise<Worked> {
  const scale = createScale(target, counter);
  const end = performance.now() + seconds * 1000;
  let done = 0;
  // The setup of the first calls is not counted for an input.
  await scale.measure(scale.weighed(fc.sample(target.inputs, { seed, numRuns: 100 })));
  for (let chunk = 0; done < runs && performance.now() < end; chunk++) {
    const numRuns = Math.min(CHUNK, runs - done);
    const failed = await scale.hold(scale.weighed(fc.sample(target.inputs, { seed: seed + chunk, numRuns })));
    done += numRuns;
    if (failed !== undefined) {
      return { runs: done, ...scale.most, failure: await smallest(target, scale, seed + chunk, failed) };
    }
  }
  return { runs: done, ...scale.most, failure: undefined };
}

/** Checks inputs that were once above their limits. @throws Error with the work of the first one above its limit */
export async function holdToWork<I>(target: Target<I>, counter: WorkCounter, inputs: readonly I[]): Promise<void> {
  const scale = createScale(target, counter);
  for (const one of scale.weighed(inputs)) {
    const failed = await scale.hold([one]);
    if (failed !== undefined) throw new Error(failed.why);
  }
}

interface Failed<I> {
  readonly input: I;
  readonly why: string;
}

interface Scale<I> {
  weighed(inputs: readonly I[]): Weighed<I>[];
  measure(batch: readonly Weighed<I>[]): Promise<number>;
  /** @returns the first input above its limit */
  hold(inputs: readonly Weighed<I>[]): Promise<Failed<I> | undefined>;
  readonly most: Pick<Worked, 'perByte' | 'share'>;
}

function createScale<I>({ fed: feed, work }: Target<I>, counter: WorkCounter): Scale<I> {
  const most = { perByte: 0, share: 0 };
  /** The average share of the limit that the last inputs used. */
  let usual = 0.1;

  /** No counted code runs between two batches, so each sum starts where the last one was read. */
  const measure = async (batch: readonly Weighed<I>[]): Promise<number> => {
    for (const { fed } of batch) {
      try {
        const result = fed.parse();
        if (result instanceof Promise) await result;
      } catch {
        // A refusal is work, too; other tests check whether it is right.
      }
    }
    return counter.take();
  };

  const holdOne = async (one: Weighed<I>, count: number): Promise<Failed<I> | undefined> => {
    const { input, fed, bound } = one;
    // One-time work, such as a growing table, does not occur the second time.
    const least = count <= bound ? count : Math.min(count, await measure([one]));
    most.share = Math.max(most.share, least / bound);
    if (fed.bytes >= LONG) most.perByte = Math.max(most.perByte, least / fed.bytes);
    if (least <= bound) return undefined;
    return { input, why: `${least} blocks of code for ${fed.bytes} bytes, at most ${bound} are expected` };
  };

  /** Whether an input may be a new maximum, and so must be measured alone. */
  const isHot = (batch: readonly Weighed<I>[], count: number): boolean => {
    const bounds = batch.reduce((sum, { bound }) => sum + bound, 0);
    const bytes = batch.reduce((sum, { fed }) => sum + fed.bytes, 0);
    return count / bounds > most.share || (batch[0]!.fed.bytes >= LONG && count / bytes > most.perByte);
  };

  const holdBatch = async (batch: readonly Weighed<I>[]): Promise<Failed<I> | undefined> => {
    const count = await measure(batch);
    if (batch.length === 1) return holdOne(batch[0]!, count);
    usual = 0.9 * usual + (0.1 * count) / batch.reduce((sum, { bound }) => sum + bound, 0);
    if (count <= batch[0]!.bound && !isHot(batch, count)) return undefined;
    const middle = batch.length >>> 1;
    return (await holdBatch(batch.slice(0, middle))) ?? (await holdBatch(batch.slice(middle)));
  };

  return {
    most,
    measure,
    weighed: (inputs) =>
      inputs.map((input) => {
        const fed = feed(input);
        return { input, fed, bound: work.base + work.each * fed.bytes };
      }),
    async hold(inputs) {
      // Inputs of similar lengths together: the first one has the smallest limit.
      counter.take();
      const sorted = inputs.toSorted((a, b) => a.bound - b.bound);
      for (let from = 0; from < sorted.length; ) {
        const least = sorted[from]!.bound * EXPECTED;
        let to = from + 1;
        for (let sum = 0; to < sorted.length && sum < least; to++) sum += sorted[to]!.bound * usual;
        const failed = await holdBatch(sorted.slice(from, to));
        if (failed !== undefined) return failed;
        from = to;
      }
      return undefined;
    },
  };
}

/** The same inputs again, one by one, and from the first one above its limit down to the smallest. */
async function smallest<I>(target: Target<I>, scale: Scale<I>, seed: number, failed: Failed<I>): Promise<Failed<I>> {
  let found = failed;
  const property = fc.asyncProperty(target.inputs, async (input) => {
    const above = await scale.hold(scale.weighed([input]));
    if (above === undefined) return true;
    if (JSON.stringify(above.input).length <= JSON.stringify(found.input).length) found = above;
    return false;
  });
  await fc.check(property, { seed, numRuns: CHUNK, interruptAfterTimeLimit: 30_000 });
  return found;
}
