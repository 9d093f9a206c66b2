import { type EventRecorder, nodeTarget } from '../../kube/events.ts';
import type { LeaseState } from '../../model/lease/observer.ts';
import type { Logger } from '../../runtime/log.ts';
import type { AgentMetrics } from '../telemetry/metrics.ts';
import type { DpuHealthReport, HealthListener } from './health.ts';

export interface AnnounceDeps {
  readonly nodeName: string;
  readonly events: EventRecorder;
  readonly metrics: AgentMetrics;
  readonly log: Logger;
}

/**
 * Reports each change of the DPU's health: an Event on the Node, a log line, and metrics. Unknown is a change as well,
 * even where the policy treats it as ready.
 */
export function announceHealth({ nodeName, events, metrics, log }: AnnounceDeps): HealthListener {
  const target = nodeTarget(nodeName);
  let last: LeaseState | undefined;
  return (report) => {
    measure(metrics, report);
    const { ready, state, reason } = report;
    if (state === last) return;
    last = state;
    if (state === 'alive') {
      log.info({ state, reason }, 'DPU is ready');
      events.record(target, { type: 'Normal', reason: 'DPUReady', message: `The DPU is ready: ${reason}` });
    } else if (ready) {
      log.warn({ state, reason }, 'DPU state unknown; treating it as ready');
      events.record(target, {
        type: 'Warning',
        reason: 'DPUUnknown',
        message: `DPU Unknown, treated as ready: ${reason}`,
      });
    } else {
      log.warn({ state, reason }, 'DPU is not ready');
      events.record(target, { type: 'Warning', reason: 'DPUNotReady', message: `DPU Not Ready: ${reason}` });
    }
  };
}

function measure(metrics: AgentMetrics, { ready, state, age }: DpuHealthReport): void {
  metrics.dpuReady.set(ready ? 1 : 0);
  for (const one of ['alive', 'unproven', 'dead', 'unknown'])
    metrics.dpuState.set({ state: one }, one === state ? 1 : 0);
  if (age !== undefined) metrics.dpuRenewalAge.set(age);
}
