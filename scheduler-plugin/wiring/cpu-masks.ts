import type { KubeClient } from '../../kube/client.ts';
import type { EventRecorder } from '../../kube/events.ts';
import type { PinningState } from '../../kube/node-topology.ts';
import type { Logger } from '../../runtime/log.ts';
import type { Fleet } from '../cluster/fleet.ts';
import { createMaskedVms } from '../cluster/masked-vms.ts';
import { createMaskSurvey } from '../controllers/mask-survey.ts';
import { createPausedStarts, createStartWriter } from '../controllers/paused-starts.ts';
import type { ExtenderMetrics } from '../telemetry/metrics.ts';

export interface CpuMasksOptions {
  readonly client: KubeClient;
  readonly events: EventRecorder;
  readonly fleet: Fleet;
  readonly metrics: ExtenderMetrics;
  readonly active: () => boolean;
  readonly log: Logger;
  /** Monotonic seconds. */
  readonly now: () => number;
}

/**
 * The extender's tasks for VMs with CPU masks other than answering the scheduler: it resumes pinned VMs and counts
 * masks.
 */
export function createCpuMasks(options: CpuMasksOptions) {
  const { client, events, fleet, metrics, active, log, now } = options;
  const starts = createPausedStarts({
    writer: createStartWriter(client),
    events,
    active,
    onResumed: () => metrics.resumed.inc(),
    log,
    now,
  });
  const vms = createMaskedVms({
    client,
    onInstance: starts.changed,
    log,
    now,
  });
  const survey = createMaskSurvey({
    fleet,
    masked: vms.all,
    active,
    onCounted: (counts) => {
      metrics.maskedVms.set(counts.vms);
      metrics.maskedVmsWithoutNode.set(counts.withoutNode);
      metrics.pausedStarts.set(active() ? starts.waiting : 0);
    },
  });
  return {
    pinningReported(node: string, pinnings: readonly PinningState[]) {
      starts.reported(
        node,
        pinnings.map(({ podUID, state, reason = '', message = '' }) => ({ podUID, state, reason, message })),
      );
    },
    lookAtAll: starts.lookAtAll,
    async run(signal: AbortSignal) {
      await Promise.all([vms.run(signal), survey.run(signal)]);
    },
    stop: starts.stop,
  };
}
