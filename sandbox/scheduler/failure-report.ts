import { PODS } from '../api-server/built-in-types.ts';
import { ApiError } from '../api-server/errors.ts';
import { timestamp } from '../api-server/preparation.ts';
import type { LocalClient } from '../clients/local-client.ts';
import { type Pod, setCondition } from '../objects.ts';

/** Component of the scheduler's Events. */
export const COMPONENT = 'default-scheduler';

/**
 * Reports to the user why a pod waits: the PodScheduled condition and a FailedScheduling Event.
 * @param reason Unschedulable if no node fits, SchedulerError if an attempt failed
 * @param now ms since 1970
 */
export async function reportFailure(
  client: LocalClient,
  pod: Pod,
  reason: 'Unschedulable' | 'SchedulerError',
  message: string,
  now: number,
): Promise<void> {
  try {
    await client.edit(
      PODS,
      pod,
      (draft) => {
        draft.status ??= {};
        draft.status.conditions ??= [];
        const condition = { type: 'PodScheduled', status: 'False', reason, message };
        setCondition(draft.status.conditions, condition, timestamp(now));
      },
      'status',
    );
  } catch (error) {
    if (!(error instanceof ApiError && error.http === 404)) throw error;
  }
  await client.record(COMPONENT, pod, { type: 'Warning', reason: 'FailedScheduling', message });
}
