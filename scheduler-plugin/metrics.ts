import { Counter, Histogram, type Registry } from '../runtime/metrics.ts';

export interface ExtenderMetrics {
  readonly calls: Counter<'verb' | 'outcome'>;
  readonly seconds: Histogram<'verb'>;
  readonly refusals: Counter<'reason'>;
}

export function createExtenderMetrics(registry: Registry): ExtenderMetrics {
  const registers = [registry];
  return {
    calls: new Counter({
      name: 'plumbline_extender_calls_total',
      help: 'Calls by verb and outcome (ok, error, malformed)',
      labelNames: ['verb', 'outcome'],
      registers,
    }),
    seconds: new Histogram({
      name: 'plumbline_extender_call_seconds',
      help: 'Seconds from the request body to the answer',
      labelNames: ['verb'],
      buckets: [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.05, 0.25, 1],
      registers,
    }),
    refusals: new Counter({
      name: 'plumbline_extender_refused_nodes_total',
      help: 'Nodes refused, by reason',
      labelNames: ['reason'],
      registers,
    }),
  };
}
