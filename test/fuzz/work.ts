import fc from 'fast-check';
import type { WorkCounter } from '../support/work-counter.ts';
import type { Fed, Target } from './target.ts';

/** How much work the inputs of a target made. */
export interface Worked {
  readonly runs: number;
  /** The most blocks per byte that was seen of an input of at least LONG bytes. */
  readonly perByte: number;
  /** The largest part of its bound that an input took, as far as inputs were looked at one by one. */
  readonly share: number;
  readonly failure: { readonly input: unknown; readonly why: string } | undefined;
}

export interface WorkOptions {
  readonly seed: number;
  readonly runs: number;
  readonly seconds?: number;
}

/** Inputs that are made at a time. */
const CHUNK = 1000;
/** Bytes from which on what an input costs apart from its length no longer counts. */
const LONG = 1024;
/** The part of the smallest bound of a batch that it is expected to take. */
const EXPECTED = 0.6;

/** An input with what is measured of it. */
interface Weighed<I> {
  readonly input: I;
  readonly fed: Fed;
  readonly bound: number;
}

/**
 * Holds the work of each input to its bound, in blocks of code that run. Reading the counters takes milliseconds, so
 * inputs are measured in batches. A batch whose sum is within the smallest bound among its inputs has none above its own;
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
  // What is set up at the first calls is none of an input's work.
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

/** Holds inputs to their bounds that were once above them. @throws Error naming the work of the first that is */
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
  /** @returns the first input that is above its bound */
  hold(inputs: readonly Weighed<I>[]): Promise<Failed<I> | undefined>;
  readonly most: Pick<Worked, 'perByte' | 'share'>;
}

function createScale<I>({ fed: feed, work }: Target<I>, counter: WorkCounter): Scale<I> {
  const most = { perByte: 0, share: 0 };
  /** What an input takes of its bound, on an average of the last ones. */
  let usual = 0.1;

  /** Between two batches nothing runs that counts, so each sum begins where the last was read. */
  const measure = async (batch: readonly Weighed<I>[]): Promise<number> => {
    for (const { fed } of batch) {
      try {
        const result = fed.parse();
        if (result instanceof Promise) await result;
      } catch {
        // A refusal is work as well; whether it is the right one is judged elsewhere.
      }
    }
    return counter.take();
  };

  const holdOne = async (one: Weighed<I>, count: number): Promise<Failed<I> | undefined> => {
    const { input, fed, bound } = one;
    // What happens once in a while, a table that grows for one, is not there at the second time.
    const least = count <= bound ? count : Math.min(count, await measure([one]));
    most.share = Math.max(most.share, least / bound);
    if (fed.bytes >= LONG) most.perByte = Math.max(most.perByte, least / fed.bytes);
    if (least <= bound) return undefined;
    return { input, why: `${least} blocks of code for ${fed.bytes} bytes, at most ${bound} are expected` };
  };

  /** Whether some input may be a new extreme, and so must be measured alone. */
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
      // Inputs of about the same length together: the first has the smallest bound.
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

/** The same inputs once more, one by one, and from the first that is above its bound to the smallest. */
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
