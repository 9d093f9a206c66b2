import type { BenchGroup } from '../support/settings.ts';
import { memoryOfCaches, memoryOverReviews } from './memory.ts';
import { PEPR_NAMES, peerPepr } from './pepr.ts';
import { reviewsOverExpress } from './speed.ts';

/** All measurements of webhook/ with the names of their results, in the order of the output. */
export const WEBHOOK_BENCHES: readonly BenchGroup[] = [
  { names: ['webhook.reviews-over-express'], benches: [reviewsOverExpress] },
  { names: PEPR_NAMES, benches: [peerPepr] },
  {
    names: ['webhook.rss-over-pepr', 'webhook.private-memory-growth-in-100k-reviews'],
    benches: [memoryOverReviews],
    alongside: 'counts',
  },
  { names: ['webhook.caches-of-10k-networks-and-5k-nodes'], benches: [memoryOfCaches], alongside: 'counts' },
];
