import type { BenchResult } from '../support/timing.ts';
import { affinityOverC } from './affinity.ts';
import { gateCalls } from './gate.ts';

/** All measurements of native/, in the order of the output. */
export const NATIVE_BENCHES: readonly (() => Promise<BenchResult | BenchResult[]>)[] = [affinityOverC, gateCalls];
