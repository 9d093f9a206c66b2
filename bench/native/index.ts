import type { BenchResult } from '../support/timing.ts';
import { affinityOverC } from './affinity.ts';
import { gateCalls } from './gate.ts';

/** Every measurement of native/, in the order in which it is printed. */
export const NATIVE_BENCHES: readonly (() => Promise<BenchResult | BenchResult[]>)[] = [affinityOverC, gateCalls];
