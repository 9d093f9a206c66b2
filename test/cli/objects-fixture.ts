import type { NodeTopologyStatus } from '../../kube/node-topology.ts';

/** Objects of a cluster as its API server has them. */

/** Two NUMA nodes of 8 cores of 2 threads; physnet0 on NUMA node 0; the first core reserved. */
export const REPORT: NodeTopologyStatus = {
  kubeletVersion: 'v1.36.2',
  cells: [
    { id: 0, cpus: '0-7,16-23' },
    { id: 1, cpus: '8-15,24-31' },
  ],
  cores: Array.from({ length: 16 }, (_, i) => `${i},${i + 16}`),
  reserved: '0,16',
  cpuManager: { policy: 'static', options: { 'full-pcpus-only': 'true' } },
  topologyManager: { policy: 'single-numa-node', scope: 'container' },
  assignments: [],
  physnets: [{ name: 'physnet0', cells: '0' }],
};

const ALLOCATABLE = {
  cpu: '30',
  memory: '64Gi',
  pods: '110',
  'devices.kubevirt.io/kvm': '1k',
  'devices.kubevirt.io/tun': '1k',
  'physnet.plumbline.dev/physnet0': '110',
};

/** @param report differences from REPORT */
export function topologyObject(name: string, report: Partial<NodeTopologyStatus> = {}) {
  const status = { ...REPORT, ...report };
  return { apiVersion: 'plumbline.dev/v1alpha1', kind: 'NodeTopology', metadata: { name }, status } as const;
}

export interface NodeParts {
  readonly labels?: object | undefined;
  readonly spec?: object | undefined;
  readonly conditions?: readonly object[] | undefined;
  readonly allocatable?: Readonly<Record<string, string>> | undefined;
}

/** A node for VMs, with room for the CPUs of REPORT. */
export function nodeObject(name: string, { labels, spec = {}, conditions = [], allocatable }: NodeParts = {}) {
  return {
    metadata: { name, labels: { 'kubevirt.io/schedulable': 'true', 'kubernetes.io/hostname': name, ...labels } },
    spec,
    status: { allocatable: { ...ALLOCATABLE, ...allocatable }, conditions },
  };
}

/** A Lease of plumbline-system for 40 s. @param renewed milliseconds since 1970 */
export function leaseObject(name: string, renewed: number, holderIdentity = name) {
  const renewTime = new Date(renewed).toISOString().replace('Z', '000Z');
  return {
    metadata: { name, namespace: 'plumbline-system' },
    spec: { holderIdentity, leaseDurationSeconds: 40, renewTime },
  };
}
