import { CpuSet } from '../../../model/cpu-set.ts';
import { createHost, type HostDescription } from '../../../model/host.ts';
import { type AssignmentsView, UNKNOWN_VIEW } from '../../../node-agent/assignments/view.ts';
import type { HostFacts } from '../../../node-agent/host/host-facts.ts';
import type { NodeKubeletConfig } from '../../../node-agent/host/kubelet-config.ts';
import type { KubeletRun } from '../../../node-agent/host/kubelet-runs.ts';
import type { NetworksView } from '../../../node-agent/networks/combine.ts';
import type { ReportInputs } from '../../../node-agent/report/status.ts';

export const knownView: AssignmentsView = {
  ...UNKNOWN_VIEW,
  policy: 'static',
  reserved: CpuSet.parse('0'),
  free: CpuSet.parse('0,3'),
  isComplete: true,
  problems: [],
  assignments: [
    { podUID: 'u', container: 'compute', cpus: CpuSet.parse('1-2'), name: { namespace: 'ns', podName: 'vm' } },
    { podUID: 'v', container: 'compute', cpus: CpuSet.parse('4'), name: undefined },
  ],
};
export const networks: NetworksView = {
  networks: { physnets: new Map([['physnet0', CpuSet.EMPTY]]), tunnel: CpuSet.parse('0-1') },
  down: new Set(),
  pmdCpus: CpuSet.EMPTY,
  problems: [],
  mapFault: undefined,
  drift: [],
  unpolled: [],
};
/** A host with four CPUs. */
const description: HostDescription = { cells: [{ id: 0, cpus: '0-3' }], cores: ['0', '1', '2', '3'] };

/** The run of a kubelet that read such a host. */
export function runWith(facts: Partial<HostFacts> = {}): KubeletRun {
  const host = createHost(facts.description ?? description);
  const all: HostFacts = {
    description,
    host,
    contradictions: [],
    sysfs: { online: host.online.toString(), cpus: [], nodes: [], directories: host.online.size },
    memory: { cells: [{ id: 0, memory: 2 ** 33, hugePages: { 'hugepages-2Mi': 2 ** 21 } }], distances: { 0: [10] } },
    isolated: CpuSet.EMPTY,
    offline: CpuSet.EMPTY,
    ...facts,
  };
  return { id: '1', startedAt: undefined, facts: all, cpus: all.host.online, kernel: undefined };
}

/** The report inputs of an agent on that host. */
export const inputs: ReportInputs = {
  run: runWith(),
  runMode: 'current',
  kernel: undefined,
  kubeletVersion: 'v1.36.0',
  capacity: {},
  kubeletConfig: undefined,
  kubeletConfigProblems: ['config.yaml does not exist'],
  view: knownView,
  networks,
  pmdCpus: CpuSet.EMPTY,
  pinsVms: true,
  pinning: [],
  refusals: [],
  interference: [],
  ovsProblems: [],
  ovsSilence: undefined,
  unsaved: [],
  clockProblems: [],
  failedDuties: [],
};

/** A configuration of the kubelet with each field. */
export const config: NodeKubeletConfig = {
  source: 'config.yaml',
  cpuManager: { policy: 'static', options: { a: 'b' } },
  topologyManager: { policy: 'restricted', scope: 'pod', options: { c: 'd' } },
  memoryManager: { policy: 'Static' },
  reservedMemory: new Map([[0, { memory: 7 }]]),
  reserved: undefined,
  maxPods: 110,
  featureGates: {},
};
