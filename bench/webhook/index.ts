import type { BenchResult } from '../model/timing.ts';
import { memoryOfCaches, memoryOverReviews } from './memory.ts';
import { reviewsOverExpress } from './speed.ts';

/** Every measurement of webhook/, in the order in which it is printed. */
export const WEBHOOK_BENCHES: readonly (() => Promise<BenchResult | BenchResult[]>)[] = [
  reviewsOverExpress,
  memoryOverReviews,
  memoryOfCaches,
];
