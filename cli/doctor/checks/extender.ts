import type { ExplainedPod } from '../../../diagnosis/objects.ts';
import { kubectl, plumbline } from '../../../diagnosis/remedies.ts';
import { isVerified } from '../../../diagnosis/vm-facts.ts';
import { countText } from '../../../model/amounts.ts';
import { NAMESPACE, SCHEDULER, SCHEDULER_WEBHOOK, WEBHOOK } from '../../../model/names.ts';
import { leaderless } from '../../extender/ask.ts';
import type { Deployment } from '../../support/objects.ts';
import { someNames } from '../../support/terminal.ts';
import { type DoctorFacts, type Way, wayOf } from '../facts/facts.ts';
import { type AreaRecorder, affecting, areaCheck, fix, inSystem, isReady, minorOf } from './finding.ts';
import { applyAgain, tagOf } from './installed.ts';
import { podNames } from './pods.ts';

export const checkExtender = areaCheck('extender', (recorder, facts: DoctorFacts) => {
  const way = wayOf(facts);
  if (way === 'sidecar') checkSidecar(recorder, facts);
  if (way === 'loopback') {
    checkLoopback(recorder, facts);
    checkConfigured(recorder, facts);
  }
  if (way === 'none') {
    recorder.error(
      'the Deployment plumbline-scheduler is not installed, and no extender runs next to kube-scheduler',
      'no scheduler checks VMs against kubelets, networks and DPUs',
      applyAgain(facts),
      { cause: 'not-installed' },
    );
  }
  if (way === 'unknown') recorder.value({ missing: 'forbidden' }, 'Deployments and Leases of plumbline-system');
  else checkRouting(recorder, facts, way);
  noteDifferences(recorder, facts);
});

function noteDifferences(recorder: AreaRecorder, { differences }: DoctorFacts): void {
  const events = (differences.value ?? []).filter(isVerified);
  const pods = [...new Set(events.map(({ involvedObject: { namespace, name } }) => `${namespace}/${name}`))];
  if (pods.length === 0) return;
  recorder.warning(
    `kubelets did not do as predicted for ${countText(pods.length, 'pod')}: ${someNames(pods)}`,
    `the extender may place VMs on nodes that reject them, or away from their networks; the first: ${events[0]?.message}`,
    fix('save the line with "replay" of the extender’s log, repeat it with plumbline simulate --replay, and report it'),
    affecting('pod', pods),
  );
}

const LOGS = fix(
  'find out why',
  inSystem('get', 'pods', '-o', 'wide', '-l', `app.kubernetes.io/name=${SCHEDULER}`),
  inSystem('logs', `deploy/${SCHEDULER}`, '--all-containers'),
);
const AWAY = { cause: 'scheduler-away' } as const;
const WAITS = `new VMs stay pending and VMs with a CPU mask paused; pods that do not name ${SCHEDULER} are not affected`;

function checkSidecar(recorder: AreaRecorder, facts: DoctorFacts): void {
  const { deployments, schedulerElection, extender } = facts;
  const deployment = recorder
    .value(deployments, `Deployments of ${NAMESPACE}`)
    ?.find(({ metadata }) => metadata.name === SCHEDULER);
  const ready = deployment?.status?.readyReplicas ?? 0;
  if (ready > 0) recorder.checked(`${countText(ready, 'replica')} of ${SCHEDULER} ready`);
  const leader = checkLeader(recorder, schedulerElection);
  // A replica without its extender is not ready: one fault, not two.
  const isSilent = leader !== undefined && extender.missing === 'silent';
  if (deployment && ready === 0 && !isSilent) recorder.error(`no replica of ${SCHEDULER} is ready`, WAITS, LOGS, AWAY);
  if (leader !== undefined) checkAnswer(recorder, leader, extender);
  if (deployment) checkSchedulerVersion(recorder, deployment, facts);
}

function checkAnswer(recorder: AreaRecorder, leader: string, extender: DoctorFacts['extender']): void {
  if (extender.missing === 'silent') {
    const what = `the extender in pod ${leader} does not answer: ${extender.failure}`;
    const read = fix('read its log', inSystem('logs', leader, '-c', 'extender'));
    recorder.error(what, WAITS, read, { cause: 'extender-away' });
  } else if (extender.missing === 'forbidden') {
    recorder.value(extender, `the extender’s answer (pods/portforward in ${NAMESPACE})`);
  } else if (extender.value?.active === false) {
    const what = `the extender in pod ${leader} is not active, although its kube-scheduler is the leader`;
    const why = 'until it is active, it neither evicts pods that cannot start nor triggers retries of waiting pods';
    recorder.warning(what, why, LOGS);
  } else if (extender.missing === undefined) recorder.checked('the extender answers');
}

function checkLeader(recorder: AreaRecorder, read: DoctorFacts['schedulerElection']): string | undefined {
  if (read.missing === 'forbidden') {
    recorder.value(read, `the Lease ${SCHEDULER}`);
    return undefined;
  }
  const why = leaderless(SCHEDULER, read.value);
  const leader = read.value?.leader;
  if (why !== undefined) {
    recorder.error(leader === undefined ? why : `${why} by pod ${leader}`, WAITS, LOGS, AWAY);
    return undefined;
  }
  recorder.checked(`pod ${leader} is the leader`);
  return leader;
}

/** At most one minor version older, never newer: https://kubernetes.io/releases/version-skew-policy/ */
function checkSchedulerVersion(recorder: AreaRecorder, deployment: Deployment, facts: DoctorFacts): void {
  const server = recorder.value(facts.apiVersion, 'the API server’s version');
  const image = deployment.spec.template.spec.containers.find(({ name }) => name === 'kube-scheduler')?.image ?? '';
  const [schedulerMinor, serverMinor] = [minorOf(tagOf(image)), minorOf(server ?? '')];
  if (schedulerMinor === undefined && image !== '')
    recorder.value({ missing: 'absent' }, `the version in the image ${image}`);
  if (server === undefined || schedulerMinor === undefined || serverMinor === undefined) return;
  const remedy = `the component manifests/components/kubernetes-1.${serverMinor}, or the chart, which follows the cluster's version`;
  if (schedulerMinor > serverMinor) {
    recorder.error(
      `kube-scheduler ${tagOf(image)} is newer than the API server ${server}`,
      'it may need an API that this API server does not have, and then it schedules nothing',
      remedy,
    );
  } else if (serverMinor - schedulerMinor > 1) {
    recorder.warning(
      `kube-scheduler ${tagOf(image)} is ${serverMinor - schedulerMinor} minor versions older than the API server ${server}`,
      'Kubernetes supports one; an older kube-scheduler ignores newer pod fields and may place VMs wrongly',
      remedy,
    );
  } else recorder.checked(`kube-scheduler ${tagOf(image)}, API server ${server}`);
}

const EXTENDERS = 'app.kubernetes.io/name=plumbline-scheduler-plugin';
const UNCHECKED = 'pods are placed without a check of DPUs, networks and CPUs';
const CONFIGURE = 'start kube-scheduler with the configuration in manifests/scheduler/loopback';

/** Each kube-scheduler of the cluster may become the leader, and then calls the extender of its own host. */
function checkLoopback(recorder: AreaRecorder, { schedulers, extenderPods, extender }: DoctorFacts): void {
  const readyPods = (extenderPods.value ?? []).filter(({ status }) => isReady(status?.conditions));
  const ready = new Set(readyPods.map(({ spec }) => spec.nodeName));
  const pods = recorder.value(schedulers, 'pods of kube-scheduler') ?? [];
  const alone = pods.filter(({ spec }) => !ready.has(spec.nodeName)).map(({ spec }) => spec.nodeName ?? '?');
  if (alone.length > 0) {
    recorder.error(
      `no extender is ready next to kube-scheduler on ${someNames(alone)}`,
      `while that kube-scheduler leads, ${UNCHECKED}`,
      fix('find out why', kubectl('-n', 'kube-system', 'get', 'pods', '-o', 'wide', '-l', EXTENDERS)),
    );
  } else recorder.checked('an extender is ready next to each kube-scheduler');
  if (extender.missing === 'silent') {
    recorder.error(`the leader’s extender does not answer: ${extender.failure}`, UNCHECKED, 'read the log of that pod');
  } else if (extender.missing === 'forbidden') {
    recorder.value(extender, 'the extender’s answer (leases and pods/portforward in kube-system)');
  } else if (extender.missing === undefined) recorder.checked('the extender answers');
}

/** No object contains kube-scheduler's configuration: judged by its command line and the calls to the extender. */
function checkConfigured(recorder: AreaRecorder, { schedulers, extender, launchers }: DoctorFacts): void {
  const bare = (schedulers.value ?? []).filter(({ spec }) => {
    const words = spec.containers.flatMap(({ command, args }) => [...(command ?? []), ...(args ?? [])]);
    return !words.some((word) => word === '--config' || word.startsWith('--config='));
  });
  if (bare.length > 0) {
    const what = `${someNames(bare.map(({ metadata }) => metadata.name ?? ''))} runs without --config`;
    recorder.error(what, 'it does not call the extender, so it places VMs by CPU count alone', CONFIGURE);
    return;
  }
  if (extender.missing !== undefined) return;
  const { active, decisions } = extender.value;
  const bound = (launchers.value ?? []).filter(({ spec }) => spec.nodeName);
  if (decisions.length > 0) recorder.checked('kube-scheduler calls the extender');
  else if (active && bound.length > 0) {
    recorder.warning(
      'kube-scheduler has not called the extender since the extender became active',
      'if a VM started since then, kube-scheduler does not call the extender',
      CONFIGURE,
    );
  }
}

const DEFAULT_SCHEDULER = 'default-scheduler';

function checkRouting(recorder: AreaRecorder, facts: DoctorFacts, way: Exclude<Way, 'unknown'>): void {
  const configurations = recorder.value(facts.mutating, 'MutatingWebhookConfigurations');
  const ourConfiguration = configurations?.find(({ metadata }) => metadata.name === WEBHOOK);
  const routes = ourConfiguration?.webhooks.some(({ name }) => name === SCHEDULER_WEBHOOK);
  const pending = (facts.launchers.value ?? []).filter(
    ({ spec, status }) => !spec.nodeName && (status?.phase ?? 'Pending') === 'Pending',
  );
  const naming = (isMeant: (scheduler: string) => boolean) =>
    pending.filter(({ spec }) => isMeant(spec.schedulerName || DEFAULT_SCHEDULER));
  if (way === 'sidecar') {
    checkRouted(recorder, facts, routes, naming);
    return;
  }
  const stranded = naming((scheduler) => scheduler === SCHEDULER);
  if (stranded.length > 0) {
    const launchers = countText(stranded.length, 'pending launcher');
    recorder.error(
      `${launchers} for ${SCHEDULER}, which is not installed: ${someNames(podNames(stranded))}`,
      'they wait for a scheduler that is not running',
      'set --scheduler-name "" on the webhook (manifests/scheduler/loopback), then restart these VMs',
      affecting('pod', podNames(stranded)),
    );
  }
  if (routes !== true) return;
  recorder.error(
    `the webhook ${SCHEDULER_WEBHOOK} assigns launchers to ${SCHEDULER}, which is not installed`,
    'new VMs wait for a scheduler that is not running',
    applyAgain(facts),
  );
}

function checkRouted(
  recorder: AreaRecorder,
  facts: DoctorFacts,
  routes: boolean | undefined,
  naming: (isMeant: (scheduler: string) => boolean) => readonly ExplainedPod[],
): void {
  if (routes === false) {
    recorder.error(
      `the MutatingWebhookConfiguration ${WEBHOOK} has no webhook ${SCHEDULER_WEBHOOK}`,
      'the default scheduler places launchers without calling the extender',
      applyAgain(facts),
      { cause: 'not-routed' },
    );
  } else if (routes) recorder.checked(`the webhook assigns launchers to ${SCHEDULER}`);
  const missed = naming((scheduler) => scheduler === DEFAULT_SCHEDULER);
  if (missed.length > 0) {
    recorder.warning(
      `${countText(missed.length, 'pending launcher')} for ${DEFAULT_SCHEDULER}: ${someNames(podNames(missed))}`,
      'that scheduler does not call the extender, so it may place them on a node that cannot run them',
      fix('restart these VMs once the webhook works', plumbline('doctor', 'webhook')),
      affecting('pod', podNames(missed), { cause: 'not-routed' }),
    );
  }
  const others = naming((scheduler) => scheduler !== DEFAULT_SCHEDULER && scheduler !== SCHEDULER);
  if (others.length > 0) {
    const names = [...new Set(others.map(({ spec }) => spec.schedulerName ?? ''))];
    recorder.checked(`${countText(others.length, 'pending launcher')} for another scheduler (${someNames(names)})`);
  }
}
