import fc from 'fast-check';
import type { WorkCounter } from '../support/work-counter.ts';
import type { Target, Verdict } from './target.ts';
import { countWork, holdToWork, type Worked, type WorkOptions } from './work.ts';

export interface Played {
  readonly runs: number;
  readonly counts: Readonly<Record<Verdict, number>>;
  /** The smallest input found that was judged wrong, and why. */
  readonly failure: { readonly input: unknown; readonly why: string } | undefined;
}

export interface PlayOptions {
  readonly seed: number;
  /** Inputs; without end when only the time is bounded. */
  readonly runs: number;
  readonly seconds?: number;
  /**
   * Hold each input to a bound of processor time and memory as well. Both depend on what else the process has in its heap
   * and on how busy the machine is, so only a process of its own asks for it.
   */
  readonly holdTimeAndMemory?: boolean;
}

/** A target whatever its inputs are. */
export interface Playable extends Pick<Target, 'name' | 'about'> {
  play(options: PlayOptions): Promise<Played>;
  /** Judges an input that was kept. @throws Error as before it was mended */
  judgeCase(input: unknown): Promise<Verdict>;
  /** Holds the work of each input to the target's bound. */
  countWork(counter: WorkCounter, options: WorkOptions): Promise<Worked>;
  /** The same for inputs that were kept. @throws Error as before it was mended */
  holdCases(counter: WorkCounter, inputs: readonly unknown[]): Promise<void>;
}

export function playable<I>(target: Target<I>): Playable {
  const { name, about } = target;
  return {
    name,
    about,
    play: (options) => play(target, options),
    // Cases are inputs that were generated.
    judgeCase: async (input) => target.judge(input as I),
    countWork: (counter, options) => countWork(target, counter, options),
    holdCases: (counter, inputs) => holdToWork(target, counter, inputs as readonly I[]),
  };
}

/** Feeds a target generated inputs until one is judged wrong; that one is then made as small as can be. */
export async function play<I>(
  target: Target<I>,
  { seed, runs, seconds, holdTimeAndMemory = false }: PlayOptions,
): Promise<Played> {
  const judge = holdTimeAndMemory ? (input: I) => judgeWithinBounds(target, input) : target.judge.bind(target);
  const counts: Record<Verdict, number> = { accepted: 0, refused: 0 };
  const property = fc.asyncProperty(target.inputs, async (input) => {
    counts[await judge(input)]++;
  });
  const details = await fc.check(property, {
    seed,
    numRuns: runs,
    ...(seconds !== undefined && { interruptAfterTimeLimit: seconds * 1000, markInterruptAsFailure: false }),
  });
  const why = details.errorInstance instanceof Error ? details.errorInstance.message : String(details.errorInstance);
  const failure = details.failed ? { input: details.counterexample?.[0], why } : undefined;
  return { runs: details.numRuns, counts, failure };
}

/** For an input of so many characters a parser with its oracle may take so much. Wide: it is orders that matter. */
const MILLISECONDS = { base: 200, each: 0.02 };
const BYTES = { base: 48 * 2 ** 20, each: 2000 };
/** Of the processor's time, so that other programs do not count; collecting garbage does: the best of some counts. */
const TRIES = 3;

/** @throws Error when the answer is wrong, or took time or memory out of proportion */
export async function judgeWithinBounds<I>(target: Target<I>, input: I): Promise<Verdict> {
  const size = JSON.stringify(input).length;
  const most = { time: MILLISECONDS.base + MILLISECONDS.each * size, memory: BYTES.base + BYTES.each * size };
  let least = { time: Number.POSITIVE_INFINITY, memory: Number.POSITIVE_INFINITY };
  for (let i = 0; i < TRIES; i++) {
    const before = { time: processorMilliseconds(), memory: process.memoryUsage().heapUsed };
    const verdict = await target.judge(input);
    const time = processorMilliseconds() - before.time;
    const memory = process.memoryUsage().heapUsed - before.memory;
    least = { time: Math.min(least.time, time), memory: Math.min(least.memory, memory) };
    if (least.time <= most.time && least.memory <= most.memory) return verdict;
  }
  const used = `${least.time.toFixed(0)} ms and ${(least.memory / 2 ** 20).toFixed(0)} MiB`;
  throw new Error(`took ${used} for ${size} characters`);
}

function processorMilliseconds(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}
