import type { DpuDiagnosis } from '../../../model/lease/diagnose.ts';
import { type AreaReport, count } from './finding.ts';
import { createNotebook } from './notebook.ts';

/**
 * What the leases of DPUs showed while the command watched them.
 * @param found undefined if the user may not read them
 */
export function checkDpus(found: readonly DpuDiagnosis[] | undefined, seconds: number): AreaReport {
  const notes = createNotebook('dpu');
  notes.value(found ? { value: found } : { missing: 'forbidden' }, 'leases of DPUs');
  if (found?.length === 0) notes.seen('no node has a DPU');
  for (const { node, renewals, writers, problems, notes: remarks } of found ?? []) {
    const by = writers.length === 0 ? '' : ` by ${writers.join(' and ')}`;
    const times = renewals === 1 ? 'once' : count(renewals, 'time');
    const remark = remarks.length === 0 ? '' : ` (${remarks.join('; ')})`;
    for (const problem of problems) {
      const [what = '', ...rest] = problem.split('; ');
      const why = `its lease was renewed ${times} in ${seconds} s${by}${remark}`;
      notes.error(`${node}: ${what}`, why, rest.join('; ') || 'see docs/reference/dpu.md', {
        objects: [`node/${node}`],
        cause: 'dpu-dead',
      });
    }
    if (problems.length === 0)
      notes.seen(`${node}: its DPU’s lease was renewed ${times} in ${seconds} s${by}${remark}`);
  }
  return notes.report;
}
