import { hostsOf } from '../../../diagnosis/hosts.ts';
import type { ExplainedPod, Occurrence } from '../../../diagnosis/objects.ts';
import { REASONS, type Reason } from '../../../diagnosis/reasons.ts';
import { kubectl, plumbline } from '../../../diagnosis/remedies.ts';
import type { VmState } from '../../../diagnosis/state.ts';
import { isVerified } from '../../../diagnosis/vm-facts.ts';
import { vmsOf } from '../../../diagnosis/vms.ts';
import { isFinalPhase } from '../../../kube/cluster-view/pods.ts';
import { countText } from '../../../model/amounts.ts';
import { ParseError } from '../../../model/errors.ts';
import { REJECTIONS } from '../../../model/kubelet/provider.ts';
import { type MaskRequest, maskRequestOf } from '../../../model/launcher/mask-request.ts';
import { startsRunning } from '../../../model/launcher/paused-start.ts';
import { groupBy } from '../../../model/lists.ts';
import { CPU_MASK_START_ANNOTATION } from '../../../model/names.ts';
import { electionFacts } from '../../extender/ask.ts';
import { someNames } from '../../support/terminal.ts';
import type { DoctorFacts } from '../facts/facts.ts';
import { type AreaRecorder, affecting, areaCheck, fix } from './finding.ts';

export const checkPods = areaCheck('pods', (recorder, facts: DoctorFacts) => {
  const { launchers, nodes, rejections } = facts;
  const all = recorder.value(launchers, 'launchers') ?? [];
  const live = all.filter(({ status }) => !isFinalPhase(status?.phase));
  noteStates(recorder, statesOf(facts, live));
  noteRejected(recorder, all, (rejections.value ?? []).filter(isVerified).filter(isOwned(facts)));
  recorder.checked(countText(live.length, 'launcher'));
  noteLateMasks(recorder, live);
  const cordoned = nodes.filter(({ spec }) => spec?.unschedulable === true).map(({ metadata }) => metadata.name ?? '');
  if (cordoned.length > 0) {
    recorder.warning(
      `${countText(cordoned.length, 'node')} cordoned: ${someNames(cordoned)}`,
      'no new VM starts there',
      fix('uncordon when the maintenance is done', kubectl('uncordon', ...cordoned)),
      affecting('node', cordoned),
    );
  }
});

/** The impact of a state of VMs, if its text does not include it. */
const IMPACT: Partial<Readonly<Record<Reason, string>>> = {
  WebhookMissed: 'the webhook did not pad them: full-pcpus-only nodes reject them',
  NotDecided: 'they may run far from their networks, or with a CPU mask that no node can satisfy',
  ExtenderNotAsked: 'they may be placed on a node that cannot run them',
  CannotEvict: 'they own CPUs and never start',
  DPUNotReady: 'their network does not work',
  SplitCores: 'they are slower than they should be',
  NetworkElsewhere: 'they are slower than they should be',
  NetworkGone: 'they lost a network that they were placed for',
  PinningNotReported: 'their guests do not run',
  PinningRefused: 'their guests do not run',
  NotResumed: 'their guests do not run',
  MaskNotApplied: 'they run on CPUs outside their mask',
  TooLarge: 'no node can ever take them',
};

export const podNames = (pods: readonly ExplainedPod[]) =>
  pods.map(({ metadata }) => `${metadata.namespace}/${metadata.name}`);

const nodesOf = (pods: readonly ExplainedPod[]) => [
  ...new Set(pods.flatMap(({ spec }) => (spec.nodeName ? [`node/${spec.nodeName}`] : []))),
];

function noteStates(recorder: AreaRecorder, states: ReadonlyMap<ExplainedPod, VmState>): void {
  const faults = [...states].filter(([, { verdict }]) => verdict === 'broken' || verdict === 'degraded');
  for (const list of groupBy(faults, ([, { reason }]) => reason).values()) {
    const pods = list.map(([pod]) => pod);
    const first = list[0]![1];
    const { reason, verdict } = first;
    const { about } = REASONS[reason];
    recorder[verdict === 'broken' ? 'error' : 'warning'](
      `${countText(pods.length, 'launcher')} ${about}: ${someNames(podNames(pods))}`,
      `${IMPACT[reason] ?? 'they do not have what they asked for'}; the first: ${first.text}`,
      fix(
        first.remedies.map(({ text }) => text).join('; or ') || 'get the details of each',
        ...first.remedies.flatMap(({ commands }) => commands),
      ),
      affecting('pod', podNames(pods), { state: { reason, remedies: first.remedies, nodes: nodesOf(pods) } }),
    );
  }
}

const LAUNCHER = '/virt-launcher-';

/** The API server cuts the prefix of generated names to 58 characters. */
const longest = (namespace = '') => namespace.length + 1 + 58;

/** A VM that its user deleted is not a finding; without permission to read VMs, all launchers count. */
function isOwned({ machines, instances }: DoctorFacts): (event: Occurrence) => boolean {
  if (machines.missing === 'forbidden' || instances.missing === 'forbidden') return () => true;
  const owners = [...(machines.value ?? []), ...(instances.value ?? [])].flatMap(({ metadata }) => {
    const { namespace, name, generateName } = metadata;
    return [name, generateName].flatMap((text) =>
      text ? [`${namespace}${LAUNCHER}${text}`.slice(0, longest(namespace))] : [],
    );
  });
  return ({ involvedObject: { namespace, name } }) => owners.some((owner) => `${namespace}/${name}`.startsWith(owner));
}

function noteRejected(recorder: AreaRecorder, all: readonly ExplainedPod[], events: readonly Occurrence[]): void {
  const failed = all.filter(({ status }) => status?.phase === 'Failed' && REJECTIONS.includes(status.reason ?? ''));
  const gone = events
    .map(({ reason, involvedObject: { namespace, name } }) => ({ reason, pod: `${namespace}/${name}` }))
    .filter(({ pod }) => pod.includes(LAUNCHER));
  const pods = [...new Set([...podNames(failed), ...gone.map(({ pod }) => pod)])];
  if (pods.length === 0) return;
  const reasons = [...new Set([...failed.map(({ status }) => status?.reason), ...gone.map(({ reason }) => reason)])];
  recorder.warning(
    `kubelets have rejected ${countText(pods.length, 'launcher')} (${reasons.join(', ')}): ${someNames(pods)}`,
    'kube-scheduler placed them on nodes that could not take them; KubeVirt deletes them and starts others, each after a longer pause',
    fix(
      'get the reason for each, and check whether kube-scheduler calls the extender',
      ...pods.slice(0, 1).map((pod) => plumbline('explain', ...vmOf(pod))),
      plumbline('doctor', 'extender'),
    ),
    affecting('pod', pods),
  );
}

function noteLateMasks(recorder: AreaRecorder, live: readonly ExplainedPod[]): void {
  const late = live.filter(({ metadata }) => startsRunning(metadata) && readMask(metadata) !== undefined);
  if (late.length === 0) return;
  const how = `after ${late.length === 1 ? 'it starts' : 'they start'} (${CPU_MASK_START_ANNOTATION}: running)`;
  recorder.checked(`${countText(late.length, 'VM')} whose CPU mask is set ${how}: ${someNames(podNames(late))}`);
}

function readMask(metadata: ExplainedPod['metadata']): MaskRequest | undefined {
  try {
    return maskRequestOf(metadata);
  } catch (error) {
    if (error instanceof ParseError) return undefined;
    throw error;
  }
}

/** `vm NAMESPACE/NAME` from the name of a launcher, whose last part is generated. */
function vmOf(launcher: string): string[] {
  const [namespace = '', name = ''] = launcher.split('/', 2);
  return ['vm', `${namespace}/${name.replace(/^virt-launcher-/, '').replace(/-[a-z0-9]{5}$/, '')}`];
}

/** The state of each VM, by the launcher in which its guest runs or is to run. */
function statesOf(facts: DoctorFacts, launchers: readonly ExplainedPod[]): Map<ExplainedPod, VmState> {
  const { nodes, topologies, agents, machines, instances, migrations, schedulerElection, extender, now } = facts;
  const vms = vmsOf({
    nodes,
    hosts: topologies.missing === 'forbidden' ? undefined : hostsOf(topologies.value ?? []).hosts,
    silent: agents.value?.silent,
    machines: machines.value,
    instances: instances.value ?? [],
    launchers,
    migrations: migrations.value,
    scheduler: {
      ...(schedulerElection.missing !== 'forbidden' && electionFacts(schedulerElection.value)),
      extenderAway: extender.missing === 'silent' ? extender.why : undefined,
    },
    now,
    events: facts.cannotEvict.value,
    rejections: facts.rejections.value,
  });
  return new Map(
    vms.flatMap(({ launchers: vmLaunchers, state }) => {
      const pod = vmLaunchers.find(({ metadata }) => metadata.uid === state.launcher);
      return pod === undefined ? [] : [[pod, state] as const];
    }),
  );
}
