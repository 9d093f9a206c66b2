import { NAMESPACE } from '../../../model/names.ts';
import type { Facts } from '../facts.ts';
import { type AreaReport, some } from '../finding.ts';
import { createNotebook, type Notebook } from '../report.ts';

const SERVICE = 'plumbline-scheduler-plugin';
const LOGS = `kubectl -n ${NAMESPACE} get pods; kubectl -n ${NAMESPACE} logs deploy/${SERVICE}`;
const CONFIGURE = 'give kube-scheduler --config with the extender: manifests/scheduler/kube-scheduler-config.yaml';

/** Whether the extender runs, and kube-scheduler asks it. */
export function checkExtender(facts: Facts): AreaReport {
  const notes = createNotebook('extender');
  checkRuns(notes, facts);
  checkConfigured(notes, facts);
  return notes.report;
}

function checkRuns(notes: Notebook, { endpoints, extenderLeaseAge, extender }: Facts): void {
  const slices = notes.value(endpoints, `EndpointSlices of ${NAMESPACE}`);
  const own = slices?.filter(({ metadata }) => metadata.labels?.['kubernetes.io/service-name'] === SERVICE) ?? [];
  const published = own.some((slice) => slice.endpoints.length > 0);
  const waits = 'pods that ask for KVM or TUN wait, as kube-scheduler has nobody to ask about them';
  if (slices && !published) {
    notes.error(`no replica of ${SERVICE} is the active one`, waits, LOGS);
  } else if (extenderLeaseAge.missing === undefined && extenderLeaseAge.value > 60) {
    const age = Math.round(extenderLeaseAge.value);
    notes.error(`the lease of ${SERVICE} was last renewed ${age} s ago`, waits, LOGS);
  } else if (published) notes.seen('a replica is active');
  if (extender.missing === 'silent') {
    notes.error(`${SERVICE} does not answer through the API server: ${extender.why}`, waits, LOGS);
  } else if (extender.missing === undefined) notes.seen('it answers');
}

/** What kube-scheduler was configured with is in no object: it is told from what can be seen of it. */
function checkConfigured(notes: Notebook, { schedulers, extender, launchers }: Facts): void {
  const pods = notes.value(schedulers, 'pods of kube-scheduler') ?? [];
  const bare = pods.filter(({ spec }) => {
    const words = spec.containers.flatMap(({ command, args }) => [...(command ?? []), ...(args ?? [])]);
    return !words.some((word) => word === '--config' || word.startsWith('--config='));
  });
  if (bare.length > 0) {
    const what = `${some(bare.map(({ metadata }) => metadata.name ?? ''))} runs without --config`;
    notes.error(what, 'it does not know of the extender, so VMs are placed by count alone', CONFIGURE);
    return;
  }
  if (extender.missing !== undefined) return;
  const { active, decisions } = extender.value;
  const bound = (launchers.value ?? []).filter(({ spec }) => spec.nodeName);
  if (decisions.length > 0) notes.seen('kube-scheduler asks it');
  else if (active && bound.length > 0) {
    notes.warning(
      'the extender has not been asked about any pod since it became active',
      'if a VM was started since then, kube-scheduler does not know of the extender',
      CONFIGURE,
    );
  }
}
