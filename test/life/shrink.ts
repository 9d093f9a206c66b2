import type { Step } from './events.ts';

export interface ShrinkOptions {
  /** Sequences that are tried side by side. */
  readonly parallel: number;
  readonly seconds: number;
  /** Whether a sequence still fails in the same way. */
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
