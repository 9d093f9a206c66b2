import type { OvsProcess } from '../open-vswitch/daemons.ts';
import type { AgentMetrics } from '../telemetry/metrics.ts';
import type { PassResult } from './process-affinity.ts';

/** The result of a pass for one process. */
export interface ProcessResult extends PassResult {
  readonly process: OvsProcess;
}

/** Records the results of passes for each daemon, including its monitor. */
export function createThreadMetrics(metrics: AgentMetrics) {
  const record = (daemon: string, results: readonly PassResult[]) => {
    const { threads, clipped, errors, displaced, moved } = sumOf(results);
    metrics.ovsThreads.set({ daemon }, threads);
    metrics.ovsClipped.set({ daemon }, clipped);
    metrics.ovsRefused.set({ daemon }, errors);
    if (displaced > 0) metrics.ovsDisplaced.inc({ daemon }, displaced);
    if (moved === 0) return;
    metrics.ovsMoves.inc({ daemon }, moved);
    metrics.ovsLastChange.set({ daemon }, Date.now() / 1000);
  };

  return {
    record,
    /** Resets the gauges when no thread is managed any more. */
    forget(): void {
      for (const metric of [metrics.ovsThreads, metrics.ovsClipped, metrics.ovsRefused]) metric.reset();
    },
  };
}

/** The sums over several processes. */
export function sumOf(results: readonly PassResult[]) {
  const sum = (of: (result: PassResult) => number) => results.reduce((total, result) => total + of(result), 0);
  return {
    threads: sum(({ threads }) => threads),
    moved: sum(({ moved }) => moved),
    displaced: sum(({ displaced }) => displaced),
    clipped: sum(({ clipped }) => clipped),
    errors: sum(({ errors }) => errors.length),
  };
}
