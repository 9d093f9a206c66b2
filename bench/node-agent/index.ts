import type { BenchSettings } from '../support/settings.ts';
import type { BenchResult } from '../support/timing.ts';
import { affinityOverC } from './affinity.ts';
import { renameToSubscriber } from './assignments.ts';
import { longRun } from './long-run.ts';
import { ovsIdle } from './ovs-idle.ts';
import { ovsReaction } from './ovs-reaction.ts';
import { parsing } from './parsing.ts';
import { renameToPublished } from './published.ts';

/** Every measurement of node-agent/, in the order in which it is printed. */
export const NODE_AGENT_BENCHES: readonly ((settings: BenchSettings) => Promise<BenchResult | BenchResult[]>)[] = [
  affinityOverC,
  renameToSubscriber,
  renameToPublished,
  parsing,
  longRun,
  ovsReaction,
  ovsIdle,
];
