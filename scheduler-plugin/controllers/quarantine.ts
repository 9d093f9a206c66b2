import type { EventRecorder } from '../../kube/events.ts';
import type { ReportFault } from '../../model/report/check.ts';
import type { ExtenderMetrics } from '../telemetry/metrics.ts';

export interface QuarantineOptions {
  /** The faults of quarantined reports, by node. */
  readonly faults: ReadonlyMap<string, ReportFault>;
  readonly events: Pick<EventRecorder, 'record'>;
  readonly active: () => boolean;
  readonly metrics: Pick<ExtenderMetrics, 'quarantinedReports'>;
}

/** Reports in an Event on the Node that its report is quarantined, and counts such reports. */
export function createQuarantine({ faults, events, active, metrics }: QuarantineOptions) {
  const announce = (node: string, { message }: ReportFault): void => {
    if (!active()) return;
    events.record(
      { apiVersion: 'v1', kind: 'Node', name: node, uid: node },
      { type: 'Warning', reason: 'ReportQuarantined', message: `${message}; Plumbline ignores this node's report` },
    );
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
