import { hostsOf, type ReportedHost } from '../../../diagnosis/hosts.ts';
import { countText, cpusAre } from '../../../model/amounts.ts';
import { splitCores, unevenCore } from '../../../model/host.ts';
import { behaviourOf } from '../../../model/kubelet/versions.ts';
import { groupBy } from '../../../model/lists.ts';
import { SCHEDULABLE_LABEL } from '../../../model/names.ts';
import { someNames } from '../../support/terminal.ts';
import type { DoctorFacts } from '../facts/facts.ts';
import { affecting, areaCheck } from './finding.ts';

export const TOPOLOGY_CONDITION = 'KubeletTopologyAgrees';

const NO_DO = `remove the label ${SCHEDULABLE_LABEL} from these nodes, or`;

interface Rule {
  readonly applies: (host: ReportedHost) => string | undefined;
  /** Default: warning. */
  readonly severity?: 'error';
  readonly why: string;
  readonly todo: string;
}

export const SHARED_CORES = {
  why: 'VMs that did not opt in to whole cores share cores with other VMs there',
  todo: 'set cpuManagerPolicyOptions: {full-pcpus-only: "true"}',
};
export const NOT_NEAR = {
  why: 'the kubelet does not keep a VM’s CPUs near its network',
  todo: 'set topologyManagerPolicy: restricted (docs/tasks/install.md#1-configure-the-kubelets)',
};

const MAX_NAMED_CORES = 4;

const splitsCore = ({ host: { host, reserved } }: ReportedHost) => splitCores(host, reserved).length > 0;

function splitText({ host: { host, reserved } }: ReportedHost): string {
  const cores = splitCores(host, reserved).map((core) => `CPUs ${core} are one core`);
  return `reserved CPUs split a core (${someNames(cores, MAX_NAMED_CORES)})`;
}

function mayHang(node: ReportedHost): boolean {
  const { host, status } = node;
  const distributes = status.cpuManager.options?.['distribute-cpus-across-numa'] === 'true';
  const isOld = behaviourOf(status.kubeletVersion ?? '')?.remainder === 'cpus';
  return isOld && distributes && host.wholeCoresOnly && splitsCore(node);
}

const RULES: readonly Rule[] = [
  {
    applies: ({ host: { kubelet } }) => ('unpredictable' in kubelet ? kubelet.unpredictable : undefined),
    why: 'the extender cannot predict the kubelet and only counts CPUs: the kubelet may reject VMs',
    todo: 'use a kubelet version and options that Plumbline predicts (docs/reference/compatibility.md#predicted-kubelets)',
  },
  {
    applies: ({ status }) => (status.cpuManager.policy === 'static' ? undefined : 'CPU manager policy none'),
    why: 'VMs with dedicated CPUs cannot run there',
    todo: `${NO_DO} set cpuManagerPolicy: static`,
  },
  {
    applies: ({ status, host }) =>
      status.cpuManager.policy === 'static' && !host.wholeCoresOnly && host.host.threadsPerCore > 1
        ? 'the option full-pcpus-only is off'
        : undefined,
    ...SHARED_CORES,
  },
  {
    applies: ({ status, host }) =>
      (status.topologyManager?.policy ?? 'none') === 'none' && host.host.cells.length > 1
        ? 'topology manager policy none'
        : undefined,
    ...NOT_NEAR,
  },
  {
    applies: ({ status }) =>
      status.conditions?.find(({ type, status: is }) => type === TOPOLOGY_CONDITION && is === 'False')?.message,
    why: 'the extender predicts the cores that the kubelet counts: it may give out CPUs of different cores as one, and reserved CPUs with them',
    todo: 'compare with plumbline topology on the node; a kernel and firmware that report a core_id for each core, a physical_package_id and a NUMA node for each CPU solve it',
  },
  {
    applies: ({ host }) => {
      const core = unevenCore(host.host);
      return core && !host.offline.isEmpty ? `${cpusAre(host.offline)} offline, and cores differ` : undefined;
    },
    severity: 'error',
    why: 'the kubelet cannot tell whole cores there, so the extender refuses annotated VMs',
    todo: 'bring these CPUs online (echo 1 > /sys/devices/system/cpu/cpuN/online), or take the other threads of their cores offline, and restart the kubelet without cpu_manager_state',
  },
  {
    applies: ({ host }) =>
      unevenCore(host.host) && host.offline.isEmpty ? 'cores have different numbers of threads' : undefined,
    severity: 'error',
    why: 'the kubelet divides CPUs by cores and cannot tell whole cores there, so the extender refuses annotated VMs',
    todo: 'use other nodes for VMs with whole cores',
  },
  {
    applies: (node) => (splitsCore(node) && !mayHang(node) ? splitText(node) : undefined),
    why: 'the other threads of these cores are in no whole core; where the kubelet distributes CPUs or cores differ, it gives them out singly, and the extender refuses such placements',
    todo: 'reserve all threads of a core (reservedSystemCPUs)',
  },
  {
    applies: (node) =>
      mayHang(node)
        ? 'full-pcpus-only and distribute-cpus-across-numa with reserved CPUs that split a core'
        : undefined,
    severity: 'error',
    why: 'a pod with exclusive CPUs can make this kubelet hang for ever, so that it starts no further pod (kubernetes #140730, fixed in 1.38); the extender refuses VMs there, other schedulers do not',
    todo: 'reserve all threads of a core (reservedSystemCPUs), or switch one of the two options off',
  },
  {
    applies: ({ host: { polled, reserved } }) =>
      polled.isSubsetOf(reserved) ? undefined : 'poll mode CPUs are not reserved',
    severity: 'error',
    why: 'the kubelet may assign CPUs on which Open vSwitch polls',
    todo: 'add the CPUs of pmd-cpu-mask to reservedSystemCPUs',
  },
];

export const checkKubelets = areaCheck('kubelet', (recorder, { topologies, nodes }: DoctorFacts) => {
  const { hosts, unusable } = hostsOf(recorder.value(topologies, 'NodeTopologies') ?? []);
  const workers = nodes.filter(({ metadata }) => metadata.labels?.[SCHEDULABLE_LABEL] !== 'false');
  const names = new Set(workers.map(({ metadata }) => metadata.name));
  const relevant = hosts.filter(({ name }) => names.has(name));
  for (const { applies, severity = 'warning', why, todo } of RULES) {
    const faults = relevant.map((host) => ({ name: host.name, text: applies(host) ?? '' }));
    for (const [text, group] of groupBy(faults, ({ text }) => text)) {
      if (text === '') continue;
      const affected = group.map(({ name }) => name);
      const what = `${text} on ${countText(affected.length, 'node')}: ${someNames(affected)}`;
      recorder[severity](what, why, todo, affecting('node', affected));
    }
  }
  for (const [name, why] of unusable) {
    const details = affecting('node', [name], { cause: 'bad-report' });
    recorder.error(
      `node ${name}: ${why}`,
      'the node counts as one without a report',
      'read the log of its agent',
      details,
    );
  }
  const versions = [...new Set(relevant.map(({ status }) => status.kubeletVersion ?? 'unknown'))].sort();
  if (relevant.length > 0) recorder.checked(`${countText(relevant.length, 'kubelet')}, ${versions.join(', ')}`);
});
