import { NAMESPACE, SCHEDULER } from '../../../model/names.ts';
import { leaderless } from '../../extender/election.ts';
import type { Facts } from '../facts/facts.ts';
import { count, fix, inSystem } from './finding.ts';
import type { Notebook } from './notebook.ts';
import { checkSchedulerVersion } from './scheduler-version.ts';

const LOGS = fix(
  'find out why',
  inSystem('get', 'pods', '-o', 'wide', '-l', `app.kubernetes.io/name=${SCHEDULER}`),
  inSystem('logs', `deploy/${SCHEDULER}`, '--all-containers'),
);
const AWAY = { cause: 'scheduler-away' } as const;
const WAITS = `new VMs stay pending; pods that do not name ${SCHEDULER} are not affected`;

/** The Deployment whose pods contain a kube-scheduler and the extender. */
export function checkSidecar(notes: Notebook, facts: Facts): void {
  const { deployments, schedulerElection, extender } = facts;
  const deployment = notes
    .value(deployments, `Deployments of ${NAMESPACE}`)
    ?.find(({ metadata }) => metadata.name === SCHEDULER);
  const ready = deployment?.status?.readyReplicas ?? 0;
  if (deployment && ready === 0) notes.error(`no replica of ${SCHEDULER} is ready`, WAITS, LOGS, AWAY);
  else if (deployment) notes.seen(`${count(ready, 'replica')} of ${SCHEDULER} ready`);

  const leader = checkLeader(notes, schedulerElection);
  if (leader !== undefined && extender.missing === 'silent') {
    const what = `the extender in pod ${leader} does not answer: ${extender.why}`;
    notes.error(what, WAITS, fix('read its log', inSystem('logs', leader, '-c', 'extender')));
  } else if (leader !== undefined && extender.missing === 'forbidden') {
    notes.value(extender, `the extender’s answer (pods/portforward in ${NAMESPACE})`);
  } else if (leader !== undefined && extender.value?.active === false) {
    const why = 'until it is active, it neither evicts pods that cannot start nor triggers retries of waiting pods';
    notes.warning(`the extender in pod ${leader} is not active, although its kube-scheduler is the leader`, why, LOGS);
  } else if (leader !== undefined && extender.missing === undefined) notes.seen('the extender answers');

  if (deployment) checkSchedulerVersion(notes, deployment, facts.apiVersion);
}

/** The leader's pod, if there is a leader. */
function checkLeader(notes: Notebook, read: Facts['schedulerElection']): string | undefined {
  if (read.missing === 'forbidden') {
    notes.value(read, `the Lease ${SCHEDULER}`);
    return undefined;
  }
  const why = leaderless(SCHEDULER, read.value);
  const leader = read.value?.leader;
  if (why !== undefined) {
    notes.error(leader === undefined ? why : `${why} by pod ${leader}`, WAITS, LOGS, AWAY);
    return undefined;
  }
  notes.seen(`pod ${leader} is the leader`);
  return leader;
}
