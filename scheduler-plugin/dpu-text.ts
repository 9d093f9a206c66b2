import type { DpuVerdict } from './dpu-health.ts';
import { type Refused, refuse } from './verdict.ts';

/** Why a node with a dead DPU is refused, with the age of the last sign of life. */
export function dpuRefusal({ state, age }: DpuVerdict): Refused {
  if (age === undefined) {
    return refuse(
      'dpu',
      state === 'unknown' ? 'DPU not ready: nothing known of it' : 'DPU not ready: not seen alive yet',
    );
  }
  return refuse('dpu', `DPU not ready: ${state}, last renewal ${Math.round(age)} s ago`);
}
