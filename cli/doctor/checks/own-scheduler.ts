import { NAMESPACE, SERVICE } from '../../../model/names.ts';
import { leaderless } from '../../extender/election.ts';
import type { Facts } from '../facts/facts.ts';
import { some } from './finding.ts';
import { fix, inSystem } from './fix.ts';
import type { Notebook } from './notebook.ts';

const LOGS = fix('find out why', inSystem('get', 'pods'), inSystem('logs', `deploy/${SERVICE}`));
const WAITS = 'pods that request KVM or TUN stay pending: the extender does not answer kube-scheduler';
const CONFIGURE =
  'start kube-scheduler with --config and the extender in it: manifests/scheduler/kube-scheduler-config.yaml';

/** The extender behind its Service, which the cluster's own kube-scheduler calls. */
export function checkOwnScheduler(notes: Notebook, facts: Facts): void {
  const deployment = facts.deployments.value?.find(({ metadata }) => metadata.name === SERVICE);
  if (deployment?.spec.replicas === 0) {
    notes.seen(`${SERVICE} is scaled to 0, for an extender next to each kube-scheduler (manifests/scheduler/loopback)`);
  } else checkReplicas(notes, facts);
  checkConfigured(notes, facts);
}

function checkReplicas(notes: Notebook, { endpoints, extenderElection, extender }: Facts): void {
  const slices = notes.value(endpoints, `EndpointSlices of ${NAMESPACE}`);
  const own = slices?.filter(({ metadata }) => metadata.labels?.['kubernetes.io/service-name'] === SERVICE) ?? [];
  const published = own.some((slice) => slice.endpoints.length > 0);
  const election = extenderElection.value;
  const overdue = election && leaderless(SERVICE, election);
  if (slices && !published) notes.error(`no replica of ${SERVICE} is active`, WAITS, LOGS);
  else if (overdue !== undefined) notes.error(overdue, WAITS, LOGS);
  else if (published) notes.seen('a replica is active');
  if (extender.missing === 'silent') {
    notes.error(`${SERVICE} does not answer through the API server: ${extender.why}`, WAITS, LOGS);
  } else if (extender.missing === undefined) notes.seen('the extender answers');
}

/**
 * No object contains kube-scheduler's configuration, so this check uses its command line and the calls to the extender.
 * The httpTimeout is not visible.
 */
function checkConfigured(notes: Notebook, { schedulers, extender, launchers }: Facts): void {
  const pods = notes.value(schedulers, 'pods of kube-scheduler') ?? [];
  const bare = pods.filter(({ spec }) => {
    const words = spec.containers.flatMap(({ command, args }) => [...(command ?? []), ...(args ?? [])]);
    return !words.some((word) => word === '--config' || word.startsWith('--config='));
  });
  if (bare.length > 0) {
    const what = `${some(bare.map(({ metadata }) => metadata.name ?? ''))} runs without --config`;
    notes.error(what, 'it does not call the extender, so it places VMs by CPU count alone', CONFIGURE);
    return;
  }
  if (extender.missing !== undefined) return;
  const { active, decisions } = extender.value;
  const bound = (launchers.value ?? []).filter(({ spec }) => spec.nodeName);
  if (decisions.length > 0) notes.seen('kube-scheduler calls the extender');
  else if (active && bound.length > 0) {
    notes.warning(
      'kube-scheduler has not called the extender since the extender became active',
      'if a VM started since then, kube-scheduler does not call the extender',
      CONFIGURE,
    );
  }
}
