import { generate, type Step } from './events.ts';
import type { Violation } from './invariants.ts';
import { play } from './play.ts';
import { shrink } from './shrink.ts';

/** Events of one node's life: few enough to shrink, and many enough for faults to meet. */
export const EVENTS_OF_A_LIFE = 30;

export interface LivesOptions {
  readonly seed: number;
  readonly events: number;
  /** Nodes that live side by side. */
  readonly parallel: number;
  /** The probability of a long pause before an event. */
  readonly calm: number;
  /** Leaves out kinds of events whose names contain one of these texts. */
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
  /** Shortened. */
  readonly steps: readonly Step[];
  /** The last words of the agent in the whole sequence. */
  readonly log: string;
}

/** Plays lives of 30 events, each with a seed of its own, from the given one on. */
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
