import type { BenchResult } from '../support/timing.ts';
import { coarseFitAgainstXor, coarseFitGrowth } from './coarse-fit.ts';

/** All measurements of model/, in the order of the output. */
export const MODEL_BENCHES: readonly (() => BenchResult)[] = [coarseFitAgainstXor, coarseFitGrowth];
