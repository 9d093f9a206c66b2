import { kubectl, plumbline } from '../../../diagnosis/remedies.ts';
import { factsOfNode } from '../../../kube/cluster-view/nodes.ts';
import type { NodeTopology, NodeTopologyStatus } from '../../../kube/node-topology.ts';
import { countText } from '../../../model/amounts.ts';
import { AGENT, KUBELET_CONFIG_CONDITION, KUBELET_RUN_CONDITION, SCHEDULABLE_LABEL } from '../../../model/names.ts';
import { preparedHost } from '../../../model/placement/needs.ts';
import { checkReport, faultOfError } from '../../../model/report/check.ts';
import { someNames } from '../../support/terminal.ts';
import type { DoctorFacts } from '../facts/facts.ts';
import { type AreaRecorder, affecting, areaCheck, type Fix, fix, inSystem } from './finding.ts';
import { TOPOLOGY_CONDITION } from './kubelet.ts';

const LABEL = `app.kubernetes.io/name=${AGENT}`;
const namesOf = (objects: readonly { readonly metadata: { readonly name?: string | undefined } }[]) =>
  objects.map(({ metadata }) => metadata.name ?? '');

const MAX_LOG_PODS = 3;

function agentsOn(names: readonly string[], systemPods: DoctorFacts['systemPods']): Fix {
  const [only, ...more] = names;
  const where = only === undefined || more.length > 0 ? [] : ['--field-selector', `spec.nodeName=${only}`];
  const pods = (systemPods.value ?? []).filter(({ metadata, spec }) => {
    return metadata.labels?.['app.kubernetes.io/name'] === AGENT && names.includes(spec.nodeName ?? '');
  });
  return fix(
    'check whether an agent runs there, and read its log',
    inSystem('get', 'pods', '-o', 'wide', '-l', LABEL, ...where),
    ...namesOf(pods.slice(0, MAX_LOG_PODS)).map((name) => inSystem('logs', name, '--tail=20')),
  );
}

const CONDITIONS: Readonly<Record<string, string>> = {
  AssignmentsKnown: 'the owners of CPUs there are unknown; the last known owners stay in the report',
  [KUBELET_CONFIG_CONDITION]: 'the extender cannot predict that kubelet exactly',
  [KUBELET_RUN_CONDITION]: 'the extender promises nothing on that node',
  KubeletSeesHost: 'the kubelet does not know the change until it starts again',
  NetworksKnown: 'the extender places no VM that needs a network there',
  NetworkMapValid: 'the agent does not apply the current network map on that node',
  NetworkMapAgrees: 'the network map overrides what the agent finds; one of them is wrong',
  UplinksUp: 'no new pod of that network starts there',
  NetworksPolledNear: 'the packets of that network cross NUMA nodes',
  OpenVswitchInPlace: 'Open vSwitch may run on CPUs of VMs there, or on fewer than are free (docs/reference/ovs.md)',
  OpenVswitchAnswers: 'networks of VMs there may not work: a virtual switch that hangs makes no new flows',
  StateSaved: 'what the agent could not save is lost when it restarts',
  ClockAgrees: 'times from that node are wrong: in its logs, its Events and its kubelet’s Lease',
  DutiesRunning: 'a duty of the agent does not run',
};

export const checkAgents = areaCheck('agents', (recorder, { nodes, topologies, agents, systemPods }: DoctorFacts) => {
  const reports = recorder.value(topologies, 'NodeTopologies');
  const read = reports ?? [];
  const leases = recorder.value(agents, 'leases of plumbline-system');
  const names = namesOf(nodes.filter(({ metadata }) => metadata.labels?.[SCHEDULABLE_LABEL] === 'true'));
  const reporting = new Set(namesOf(read.filter(({ status }) => status)));
  const unread = new Set(namesOf(read.filter((report) => report.unread !== undefined)));
  const mute = reports ? names.filter((name) => !reporting.has(name) && !unread.has(name)) : [];
  if (mute.length > 0 && reporting.size > 0) {
    recorder.error(
      `${countText(mute.length, 'node')} of KubeVirt without a report: ${someNames(mute)}`,
      'the extender only counts CPUs there, and gives these nodes the lowest score',
      agentsOn(mute, systemPods),
      affecting('node', mute, { cause: 'agent-away' }),
    );
  }
  const silent = [...(leases?.silent ?? [])].filter((name) => reporting.has(name));
  if (silent.length > 0) noteSilent(recorder, silent, systemPods);
  else if (leases && leases.ages.size > 0)
    recorder.checked(`${countText(leases.ages.size, 'agent')} renewed their Lease recently`);
  const orphans = reports ? [...reporting].filter((name) => !nodes.some(({ metadata }) => metadata.name === name)) : [];
  if (orphans.length > 0) {
    recorder.warning(
      `reports of nodes that no longer exist: ${someNames(orphans)}`,
      'the extender ignores them',
      fix('delete them', kubectl('delete', 'nodetopology', ...orphans)),
      affecting('nodetopology', orphans),
    );
  }
  noteQuarantined(recorder, nodes, read);
  noteMaskless(recorder, namesOf(read.filter(({ status }) => status?.pinsVMs === false)));
  for (const { metadata, status } of read) {
    for (const { type, status: is, reason, message } of status?.conditions ?? []) {
      // The area kubelet reports the cores, once for all nodes of a model.
      if (is !== 'False' || type === TOPOLOGY_CONDITION) continue;
      recorder.warning(
        `${metadata.name}: ${type} is False (${reason}): ${message}`,
        CONDITIONS[type] ?? 'the effect is listed in docs/reference/events.md',
        'see the fix for each condition in docs/reference/events.md#conditions-of-a-nodetopology',
        affecting('node', [metadata.name ?? '']),
      );
    }
  }
});

function noteMaskless(recorder: AreaRecorder, names: readonly string[]): void {
  if (names.length === 0) return;
  const which = `${countText(names.length, 'node')} without CPU masks (--vm-pinning off)`;
  recorder.checked(`${which}, so VMs with a mask are not placed there: ${someNames(names)}`);
}

function noteSilent(recorder: AreaRecorder, names: readonly string[], systemPods: DoctorFacts['systemPods']): void {
  const reports = names.length === 1 ? 'its report is' : 'their reports are';
  recorder.error(
    `${countText(names.length, 'agent')} silent: ${someNames(names)}`,
    `${reports} old: new VMs go there last and by CPU count only, or not at all (with a network or a CPU mask)`,
    agentsOn(names, systemPods),
    affecting('node', names, { cause: 'agent-away' }),
  );
}

function noteQuarantined(recorder: AreaRecorder, nodes: DoctorFacts['nodes'], reports: readonly NodeTopology[]): void {
  for (const { metadata, status, unread } of reports) {
    const node = nodes.find((node) => node.metadata.name === metadata.name);
    const fault = unread ?? (status && faultOf(status, node));
    if (fault === undefined) continue;
    const name = metadata.name ?? '';
    recorder.error(
      `the report of node ${name} is quarantined: ${fault}`,
      'the node counts as one without a report, and does not affect VMs on other nodes',
      `check ${name} and the log of its agent: the agent is broken, or the node is compromised`,
      affecting('node', [name], { cause: 'bad-report' }),
    );
  }
}

function faultOf(status: NodeTopologyStatus, node: DoctorFacts['nodes'][number] | undefined): string | undefined {
  try {
    const { host } = preparedHost({ ...status, assignments: [] });
    return checkReport(host, node && factsOfNode(node), status.devices)?.message;
  } catch (error) {
    return faultOfError(error).message;
  }
}

/** VMs that lost more than 1 % of their dedicated CPUs for ten minutes. */
export const checkInterference = areaCheck('interference', (recorder, { topologies }: DoctorFacts) => {
  const reports = recorder.value(topologies, 'NodeTopologies') ?? [];
  for (const { metadata, status } of reports) {
    const disturbed = status?.interference ?? [];
    if (disturbed.length === 0) continue;
    const names = disturbed.map(({ namespace, podName, percent }) => `${namespace}/${podName} (${percent} %)`);
    recorder.warning(
      `${metadata.name}: interrupts and other work take CPU time from ${someNames(names)}`,
      'the VM’s response times vary',
      fix(
        'see which interrupts they are, and what can be moved',
        plumbline('interference', metadata.name ?? '', '--plan'),
      ),
      affecting(
        'pod',
        disturbed.map(({ namespace, podName }) => `${namespace}/${podName}`),
      ),
    );
  }
  const measured = reports.filter(({ status }) => status !== undefined).length;
  if (measured > 0)
    recorder.checked(`no VM on ${countText(measured, 'node')} lost more than 1 % of its CPUs for ten minutes`);
});
