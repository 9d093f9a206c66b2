import type { BenchGroup } from '../support/settings.ts';
import { affinityOverC } from './affinity.ts';
import { renameToSubscriber } from './assignments.ts';
import { longRun } from './long-run.ts';
import { ovsIdle } from './ovs-idle.ts';
import { ovsReaction } from './ovs-reaction.ts';
import { parsing } from './parsing.ts';
import { renameToPublished } from './published.ts';

/** All measurements of node-agent/ with the prefixes of their names, in the order of the output. */
export const NODE_AGENT_BENCHES: readonly BenchGroup[] = [
  { names: ['node-agent.affinity'], benches: [affinityOverC] },
  { names: ['node-agent.rename-to-subscriber'], benches: [renameToSubscriber] },
  { names: ['node-agent.rename-to-published'], benches: [renameToPublished] },
  { names: ['node-agent.parse'], benches: [parsing] },
  { names: ['node-agent.private-megabytes', 'node-agent.idle-percent'], benches: [longRun], alongside: 'waits' },
  { names: ['node-agent.ovs-reaction'], benches: [ovsReaction] },
  {
    names: ['node-agent.ovs-idle', 'node-agent.idle-system-calls', 'node-agent.resident'],
    benches: [ovsIdle],
    alongside: 'waits',
  },
];
