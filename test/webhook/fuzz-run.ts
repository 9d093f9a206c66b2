import { parseArgs } from 'node:util';
import fc from 'fast-check';
import { judge, mutatedReview } from './fuzz.ts';

/** `npm run fuzz:webhook -- [--runs 100000] [--seed n]`: the long run of fuzz.test.ts. */
const { values } = parseArgs({ options: { runs: { type: 'string', default: '100000' }, seed: { type: 'string' } } });
const seed = Number(values.seed ?? Date.now() % 2 ** 31);
const counts = { reviewed: 0, refused: 0 };
const begun = performance.now();
await fc.assert(
  fc.asyncProperty(mutatedReview, async (review) => {
    counts[await judge(review)]++;
  }),
  { numRuns: Number(values.runs), seed },
);
const seconds = ((performance.now() - begun) / 1000).toFixed(0);
console.log(
  `${values.runs} mutated reviews, seed ${seed}, ${seconds} s: ${counts.reviewed} reviewed, ${counts.refused} refused, 0 failed`,
);
