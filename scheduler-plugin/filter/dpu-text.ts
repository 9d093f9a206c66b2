import type { LeaseState } from '../../model/lease/observer.ts';
import { DPU_REFUSAL, type Refused, refuse } from '../../model/placement/verdict.ts';
import type { DpuVerdict } from '../cluster/dpu-health.ts';

const WITHOUT_AGE: Readonly<Record<LeaseState, string>> = {
  unknown: 'its state is unknown',
  unproven: 'not seen alive yet',
  dead: 'dead, no lease renewal observed',
  alive: 'not seen alive yet',
};

/** Seconds, ascending. */
const AGES = [1, 2, 5, 10, 20, 30, 40, 50, 60, 90, 120, 300, 600, 1800, 3600, 7200, 21_600, 86_400, 604_800];

/**
 * Rounds an age so that it rarely changes: the scheduler writes the text into the pod's condition, and each change of
 * that wakes the pod for another futile attempt.
 */
function steppedAge(seconds: number): number {
  return AGES.findLast((age) => age <= seconds) ?? 0;
}

/** Why a node with a dead DPU is refused, with the age of the last sign of life. */
export function dpuRefusal({ state, age }: DpuVerdict): Refused {
  if (age === undefined) return refuse('dpu', `${DPU_REFUSAL}: ${WITHOUT_AGE[state]}`);
  return refuse('dpu', `${DPU_REFUSAL}: ${state}, last renewal ${steppedAge(age)} s ago`);
}
