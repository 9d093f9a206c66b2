import { NODE_TOPOLOGY_API, nodeTopology } from '../../kube/node-topology.ts';
import { createLogger } from '../../runtime/log.ts';
import { ClusterState } from '../../scheduler-plugin/cluster/cluster-state.ts';
import { type BenchResult, summary } from '../support/timing.ts';
import { nodeName, nodeStatus } from './nodes.ts';

const NODES = 100;
/** Changes of each node per second. */
const CHANGES = 5;
/** Share of one core. */
const MAX_SHARE = 0.25;
const ROUNDS = 5;

/** Seconds over which the calls of a round are counted at least. */
const MIN_ROUND_SECONDS = 0.3;

function secondsPerCall(call: () => void): number {
  let calls = 1;
  for (;;) {
    const start = performance.now();
    for (let i = 0; i < calls; i++) call();
    const seconds = (performance.now() - start) / 1000;
    if (seconds >= MIN_ROUND_SECONDS) return seconds / calls;
    calls = Math.max(calls * 2, Math.ceil((calls * MIN_ROUND_SECONDS) / Math.max(seconds, 1e-6)));
  }
}

/**
 * The share of a core for processing reports while 100 nodes change five times a second: from a line of the watch, as
 * the reflector reads it, to the state's arrays.
 */
export function reportUpdates(): BenchResult {
  const state = new ClusterState(createLogger('bench', 'warn'));
  const lines = Array.from({ length: NODES * 8 }, (_, i) => {
    const metadata = { name: nodeName(i % NODES), resourceVersion: String(i), labels: {}, annotations: {} };
    const { apiVersion, kind } = NODE_TOPOLOGY_API;
    const status = nodeStatus(i + Math.floor(i / NODES));
    return JSON.stringify({ type: 'MODIFIED', object: { apiVersion, kind, metadata, status } });
  });
  let next = 0;
  const takeIn = () => {
    const { object } = JSON.parse(lines[next++ % lines.length]!) as { object: unknown };
    const { metadata, status } = nodeTopology.parse(object);
    state.reportChanged(metadata.name ?? '', status);
  };
  const shares = Array.from({ length: ROUNDS }, () => secondsPerCall(takeIn) * NODES * CHANGES);
  return summary('scheduler-plugin.share-of-a-core-for-500-reports-a-second', shares, { most: MAX_SHARE });
}
