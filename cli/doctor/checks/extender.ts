import { type Facts, wayOf } from '../facts/facts.ts';
import { APPLY, type AreaReport } from './finding.ts';
import { checkLoopback } from './loopback.ts';
import { createNotebook } from './notebook.ts';
import { checkRouting } from './routing.ts';
import { checkSidecar } from './sidecar.ts';

/** Whether the extender runs and a kube-scheduler calls it, for the setup of this cluster. */
export function checkExtender(facts: Facts): AreaReport {
  const notes = createNotebook('extender');
  const way = wayOf(facts);
  if (way === 'sidecar') checkSidecar(notes, facts);
  if (way === 'loopback') checkLoopback(notes, facts);
  if (way === 'none') {
    notes.error(
      'the Deployment plumbline-scheduler is not installed, and no extender runs next to kube-scheduler',
      'no scheduler checks VMs against kubelets, networks and DPUs',
      APPLY,
      { cause: 'not-installed' },
    );
  }
  if (way === 'unknown') notes.value({ missing: 'forbidden' }, 'Deployments and Leases of plumbline-system');
  else checkRouting(notes, facts, way);
  return notes.report;
}
