import { PODS } from '../api-server/built-in-types.ts';
import { ApiError } from '../api-server/errors.ts';
import { timestamp } from '../api-server/preparation.ts';
import type { LocalClient } from '../clients/local-client.ts';
import { type Pod, setCondition } from '../objects.ts';
import type { Misfit } from './node-filters.ts';

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

/**
 * The message of a pod that fits no node: reasons with their counts, sorted as text.
 * Source: pkg/scheduler/framework/types.go, FitError.Error. The text of the post-filter plugins starts with that of the
 * plugin for device claims, which the sandbox does not have (as in kube-scheduler 1.36).
 */
export function fitErrorMessage(nodes: number, misfits: ReadonlyMap<string, Misfit>): string {
  if (nodes === 0) return '0/0 nodes are available: no nodes available to schedule pods.';
  const reasons = counted([...misfits.values()].flatMap((misfit) => misfit.reasons));
  const preemption = counted(
    [...misfits.values()].map(({ unresolvable }) =>
      unresolvable ? 'Preemption is not helpful for scheduling' : 'No preemption victims found for incoming pod',
    ),
  );
  const head = `0/${nodes} nodes are available`;
  return `${head}: ${reasons}. no new claims to deallocate, preemption: ${head}: ${preemption}.`;
}

function counted(texts: readonly string[]): string {
  const counts = new Map<string, number>();
  for (const text of texts) counts.set(text, (counts.get(text) ?? 0) + 1);
  return [...counts]
    .map(([text, count]) => `${count} ${text}`)
    .sort()
    .join(', ');
}
