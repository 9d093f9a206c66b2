import { type EventRecorder, nodeTarget } from '../../kube/events.ts';
import type { ReportFault } from '../../model/report/check.ts';
import type { ExtenderMetrics } from '../telemetry/metrics.ts';

export interface QuarantineOptions {
  readonly faults: ReadonlyMap<string, ReportFault>;
  readonly events: Pick<EventRecorder, 'record'>;
  readonly active: () => boolean;
  readonly metrics: Pick<ExtenderMetrics, 'quarantinedReports'>;
}

/** Reports in an Event on the Node that its report is quarantined, and counts such reports. */
export function createQuarantine({ faults, events, active, metrics }: QuarantineOptions) {
  const announce = (node: string, { message }: ReportFault): void => {
    if (!active()) return;
    const text = `${message}; Plumbline ignores this node's report`;
    events.record(nodeTarget(node), { type: 'Warning', reason: 'ReportQuarantined', message: text });
  };
  return {
    changed(node: string, fault: ReportFault | undefined): void {
      metrics.quarantinedReports.set(faults.size);
      if (fault !== undefined) announce(node, fault);
    },
    /** Reports every quarantine, when this replica has become the active one. */
    lookAtAll(): void {
      for (const [node, fault] of faults) announce(node, fault);
    },
  };
}
