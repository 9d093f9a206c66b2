import assert from 'node:assert/strict';
import fc from 'fast-check';
import { judge, mutatedReview } from './fuzz.ts';

describe('mutated AdmissionReviews', () => {
  it('are answered as reviews or refused with a message, and no patch fails to apply', async function () {
    this.timeout(60_000);
    const counts = { reviewed: 0, refused: 0 };
    await fc.assert(
      fc.asyncProperty(mutatedReview, async (review) => {
        counts[await judge(review)]++;
      }),
      { numRuns: 2000 },
    );
    assert.ok(counts.reviewed > 500 && counts.refused > 100, JSON.stringify(counts));
  });
});
