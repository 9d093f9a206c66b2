import { isVerified } from '../../explain/vm-facts.ts';
import { type Facts, wayOf } from '../facts/facts.ts';
import { APPLY, type AreaReport, count, fix, some } from './finding.ts';
import { checkLoopback } from './loopback.ts';
import { createNotebook, type Notebook } from './notebook.ts';
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
  noteDifferences(notes, facts);
  return notes.report;
}

/** Kubelets that did not do as the extender had predicted, in the last hour. */
function noteDifferences(notes: Notebook, { differences }: Facts): void {
  const events = (differences.value ?? []).filter(isVerified);
  const pods = [...new Set(events.map(({ involvedObject: { namespace, name } }) => `${namespace}/${name}`))];
  if (pods.length === 0) return;
  notes.warning(
    `kubelets did not do as predicted for ${count(pods.length, 'pod')}: ${some(pods)}`,
    `the extender may place VMs on nodes that reject them, or away from their networks; the first: ${events[0]?.message}`,
    fix('save the line with "replay" of the extender’s log, repeat it with plumbline simulate --replay, and report it'),
    { objects: pods.map((name) => `pod/${name}`) },
  );
}
