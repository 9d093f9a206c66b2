import type { BenchResult } from '../model/timing.ts';
import { affinityOverC } from './affinity.ts';
import { renameToSubscriber } from './assignments.ts';

/** Every measurement of node-agent/, in the order in which it is printed. */
export const NODE_AGENT_BENCHES: readonly (() => Promise<BenchResult>)[] = [affinityOverC, renameToSubscriber];
