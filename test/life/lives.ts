import { generate, type Step } from './events.ts';
import type { Violation } from './invariants.ts';
import { play } from './play.ts';

/** Events of one node's life: few enough to shrink, and many enough for faults to meet. */
export const EVENTS_OF_A_LIFE = 30;

export interface LivesOptions {
  readonly seed: number;
  readonly events: number;
  readonly parallel: number;
  readonly calm: number;
  readonly without: readonly string[];
  /** Seconds that may be spent on shortening the sequence of a failure. */
  readonly shrinkSeconds: number;
  /** Whether the other lives continue after a failure; each way of failing is reported once. */
  readonly goesOn: boolean;
  readonly progress: (events: number, failures: number) => void;
  /** Called with each new way of failing, before its sequence is shortened, which takes minutes. */
  readonly onFailure?: (failure: Failure) => void;
}

export interface Failure extends Violation {
  readonly seed: number;
  readonly steps: readonly Step[];
  readonly log: string;
}

export async function playLives(options: LivesOptions): Promise<{ events: number; failures: Failure[] }> {
  const { seed, parallel, calm, without, goesOn, progress } = options;
  const sizes = Array.from({ length: Math.ceil(options.events / EVENTS_OF_A_LIFE) }, (_, life) =>
    Math.min(EVENTS_OF_A_LIFE, options.events - life * EVENTS_OF_A_LIFE),
  );
  const found = new Map<string, Failure>();
  let events = 0;
  let next = 0;
  const worker = async () => {
    while (next < sizes.length && (goesOn || found.size === 0)) {
      const life = next++;
      const steps = generate(seed + life, sizes[life] ?? 0, calm, without);
      const {
        violations,
        events: happened,
        log,
      } = await play(steps, {
        endsWith: (invariant) => !found.has(invariant),
        recovers: true,
        onEvent: () => progress(++events, found.size),
      });
      for (const violation of violations) {
        if (found.has(violation.invariant)) continue;
        const failure = { ...violation, seed: seed + life, steps: steps.slice(0, happened), log };
        found.set(violation.invariant, failure);
        options.onFailure?.(failure);
      }
    }
  };
  await Promise.all(Array.from({ length: Math.min(parallel, sizes.length) }, worker));
  const failures: Failure[] = [];
  for (const failure of found.values()) failures.push(await shortened(failure, options));
  return { events, failures };
}

async function shortened(failure: Failure, { parallel, shrinkSeconds }: LivesOptions): Promise<Failure> {
  let message = failure.message;
  const fails = async (steps: readonly Step[]) => {
    const { violations } = await play(steps, {
      endsWith: (invariant) => invariant === failure.invariant,
      recovers: true,
    });
    const violation = violations.find(({ invariant }) => invariant === failure.invariant);
    message = violation?.message ?? message;
    return violation !== undefined;
  };
  const steps = await shrink(failure.steps, { parallel, seconds: shrinkSeconds, fails });
  return { ...failure, steps, message };
}

/** A failure as a reader needs it: what did not hold, and the shortest sequence of events that leads to it. */
export function failureText({ invariant, message, seed, steps, log }: Failure): string {
  const sequence = steps.map(({ kind, pause }) => `    after ${(pause / 1000).toFixed(1)} s: ${kind}`);
  return [
    `NOT HELD: (${invariant.slice(0, 1)})${invariant.slice(1)}`,
    `  ${message}`,
    `  seed ${seed}:`,
    ...sequence,
    `  the agent’s last words:\n    ${log}`,
  ].join('\n');
}

interface ShrinkOptions {
  readonly parallel: number;
  readonly seconds: number;
  readonly fails: (steps: readonly Step[]) => Promise<boolean>;
}

/** Removes events as long as the sequence fails in the same way: halves first, then smaller parts, then single events. */
export async function shrink(steps: readonly Step[], options: ShrinkOptions): Promise<readonly Step[]> {
  const { parallel, seconds, fails } = options;
  const deadline = performance.now() + seconds * 1000;
  let shortest = steps;
  let size = Math.ceil(steps.length / 2);
  while (size >= 1 && performance.now() < deadline) {
    const shorter = await firstThatFails(without(shortest, size), { parallel, fails, deadline });
    if (shorter !== undefined) shortest = shorter;
    else size = Math.floor(size / 2);
    size = Math.min(size, shortest.length);
  }
  return shortest;
}

/** The sequence without each part of this size; without the first part first, as a failure's causes come late. */
function without(steps: readonly Step[], size: number): Step[][] {
  const starts = Array.from({ length: Math.ceil(steps.length / size) }, (_, part) => part * size);
  return starts.map((start) => [...steps.slice(0, start), ...steps.slice(start + size)]);
}

async function firstThatFails(
  candidates: readonly (readonly Step[])[],
  { parallel, fails, deadline }: Pick<ShrinkOptions, 'parallel' | 'fails'> & { deadline: number },
): Promise<readonly Step[] | undefined> {
  for (let at = 0; at < candidates.length && performance.now() < deadline; at += parallel) {
    const batch = candidates.slice(at, at + parallel);
    const failed = await Promise.all(batch.map(fails));
    const first = batch.find((_, index) => failed[index]);
    if (first !== undefined) return first;
  }
  return undefined;
}
