import { CpuSet } from '../../../model/cpu-set.ts';
import { type AssignmentsView, UNKNOWN_VIEW } from '../../../node-agent/assignments/view.ts';
import type { NodeKubeletConfig } from '../../../node-agent/host/kubelet-config.ts';
import type { NetworksView } from '../../../node-agent/networks/combine.ts';
import type { ReportInputs } from '../../../node-agent/report/status.ts';

export const knownView: AssignmentsView = {
  ...UNKNOWN_VIEW,
  policy: 'static',
  reserved: CpuSet.parse('0'),
  free: CpuSet.parse('0,3'),
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
/** The report inputs of an agent on a node with four CPUs. */
export const inputs: ReportInputs = {
  host: { cells: [{ id: 0, cpus: '0-3' }], cores: ['0', '1', '2', '3'] },
  kubeletVersion: 'v1.36.0',
  capacity: {},
  kubeletConfig: undefined,
  kubeletConfigProblems: ['config.yaml does not exist'],
  view: knownView,
  memory: { cells: [{ id: 0, memory: 2 ** 33, hugePages: { 'hugepages-2Mi': 2 ** 21 } }], distances: { 0: [10] } },
  isolated: CpuSet.EMPTY,
  contradictions: [],
  offline: CpuSet.EMPTY,
  networks,
  pmdCpus: CpuSet.EMPTY,
  pinsVms: true,
  pinning: [],
  refusals: [],
  ovsProblems: [],
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
