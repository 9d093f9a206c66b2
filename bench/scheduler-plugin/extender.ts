import type { Logger } from '../../runtime/log.ts';
import { createRegistry } from '../../runtime/metrics.ts';
import type { ClusterState } from '../../scheduler-plugin/cluster/cluster-state.ts';
import { NeedsReader } from '../../scheduler-plugin/cluster/pod-needs.ts';
import { Lookahead } from '../../scheduler-plugin/controllers/lookahead.ts';
import { Extender } from '../../scheduler-plugin/extender/extender.ts';
import { Decisions } from '../../scheduler-plugin/filter/decisions.ts';
import { NodeVerdicts } from '../../scheduler-plugin/filter/node-verdicts.ts';
import { createExtenderMetrics } from '../../scheduler-plugin/telemetry/metrics.ts';

/** The extender of the only replica, over nodes without a DPU or an exclusion. */
export function createBenchExtender(state: ClusterState, log: Logger) {
  const nowSeconds = () => performance.now() / 1000;
  const nothing = () => undefined;
  const verdicts = new NodeVerdicts({
    state,
    exclusions: { refusalOf: nothing },
    dpuHealth: { verdict: () => ({ ready: true, state: 'alive', age: 1 }) },
    unpredictable: 'refuse',
    nowSeconds,
  });
  const lookahead = new Lookahead({ fleet: state.fleet, verdicts, log });
  const extender = new Extender({
    lookahead,
    decisionLog: { waits: nothing },
    state,
    verdicts,
    recheck: { waits: nothing, settled: nothing, neverOffered: nothing },
    reader: new NeedsReader('all'),
    decisions: new Decisions(),
    unpredictable: 'refuse',
    metrics: createExtenderMetrics(createRegistry()),
    cluster: { missing: undefined, bindingsKnownUntil: Number.NEGATIVE_INFINITY },
    replica: { mayAnswer: () => true },
    nowSeconds,
    answers: 16,
    reservationTimeout: 600,
  });
  return { extender, lookahead };
}
