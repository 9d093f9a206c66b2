import type { NodeTopologyStatus } from '../../kube/node-topology.ts';
import type { Pod } from '../../kube/resources.ts';
import { CpuSet } from '../../model/cpu-set.ts';
import { CPU_MASK_ANNOTATION, FULL_PCPUS_ANNOTATION, FULL_PCPUS_ONLY } from '../../model/names.ts';
import { vmiOwner } from '../support/vmi-owner.ts';

/** Deterministic numbers between 0 and 1. */
export function numbers(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

/**
 * Several types of hosts: two sockets with 32 SMT cores, two with 12 in alternating numbers, one with 24 without SMT.
 */
const MAKES: readonly Omit<NodeTopologyStatus, 'assignments'>[] = [
  {
    kubeletVersion: 'v1.36.2',
    cells: [
      { id: 0, cpus: '0-31,64-95' },
      { id: 1, cpus: '32-63,96-127' },
    ],
    cores: Array.from({ length: 64 }, (_, core) => `${core},${core + 64}`),
    reserved: '0,32,64,96',
    cpuManager: { policy: 'static', options: { 'full-pcpus-only': 'true' } },
    topologyManager: { policy: 'single-numa-node', scope: 'pod' },
    physnets: [
      { name: 'physnet0', cells: '0' },
      { name: 'physnet1', cells: '1' },
    ],
    tunnel: { cells: '0' },
    pmdCPUs: '1,65',
  },
  {
    kubeletVersion: 'v1.35.4',
    cells: [
      { id: 0, cpus: Array.from({ length: 24 }, (_, i) => 2 * i).join(',') },
      { id: 1, cpus: Array.from({ length: 24 }, (_, i) => 2 * i + 1).join(',') },
    ],
    cores: Array.from({ length: 24 }, (_, core) => `${core},${core + 24}`),
    reserved: '0,24',
    cpuManager: { policy: 'static', options: { 'full-pcpus-only': 'true' } },
    topologyManager: { policy: 'best-effort', scope: 'container' },
    physnets: [{ name: 'physnet1', cells: '1' }],
    tunnel: { cells: '1' },
  },
  {
    kubeletVersion: 'v1.36.2',
    cells: [{ id: 0, cpus: '0-23' }],
    cores: Array.from({ length: 24 }, (_, core) => String(core)),
    reserved: '0-1',
    cpuManager: { policy: 'static' },
    topologyManager: { policy: 'restricted' },
    physnets: [{ name: 'physnet0', cells: '0' }],
  },
];

export interface InventedVm {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly cpus: string;
  readonly count: number;
  readonly padding: number;
}

export interface InventedNode {
  readonly name: string;
  readonly status: NodeTopologyStatus;
  readonly vms: readonly InventedVm[];
  readonly dpu: boolean;
}

const NAMES = ['forwarder', 'upf', 'router', 'firewall', 'amf', 'du', 'trader', 'voice'];
const NAMESPACES = ['east', 'west', 'core', 'edge'];

/** A node with VMs on some of its whole cores; the same index gives the same node. */
export function inventNode(index: number): InventedNode {
  const random = numbers(index * 7919 + 17);
  const make = MAKES[index % 7 === 3 ? 2 : index % 3 === 1 ? 1 : 0]!;
  const polled = new Set(make.pmdCPUs?.split(','));
  const reserved = new Set(CpuSet.parse(make.reserved).toArray().map(String));
  const free = make.cores.filter((core) => core.split(',').every((cpu) => !reserved.has(cpu) && !polled.has(cpu)));
  const vms: InventedVm[] = [];
  const wanted = Math.floor(random() * 8);
  for (let vm = 0; vm < wanted; vm++) {
    const cores = free.splice(0, 2 + Math.floor(random() * 6));
    if (cores.length < 2) break;
    if (random() < 0.25) free.shift();
    const cpus = cores.flatMap((core) => core.split(',').map(Number));
    const name = `${NAMES[Math.floor(random() * NAMES.length)]}-${index}${String.fromCharCode(97 + vm)}`;
    vms.push({
      namespace: NAMESPACES[Math.floor(random() * NAMESPACES.length)]!,
      name,
      uid: `uid-${index}-${vm}`,
      cpus: cpus.sort((a, b) => a - b).join(','),
      count: cpus.length,
      padding: cpus.length > cores.length && random() < 0.6 ? 1 : 0,
    });
  }
  return {
    name: `worker-${index}.east.example.internal`,
    status: {
      ...make,
      assignments: vms.map(({ uid, cpus }) => ({ podUID: uid, container: 'compute', cpus })),
    },
    vms,
    dpu: index % 25 === 7,
  };
}

/** The launcher of a VM. */
export function launcher(vm: Pick<InventedVm, 'namespace' | 'name' | 'uid' | 'count' | 'padding'>): Pod {
  const amounts = { cpu: String(vm.count), memory: '4Gi', 'devices.kubevirt.io/kvm': '1' };
  return {
    metadata: {
      namespace: vm.namespace,
      name: `virt-launcher-${vm.name}-x2x4z`,
      uid: vm.uid,
      annotations: {
        [FULL_PCPUS_ANNOTATION]: FULL_PCPUS_ONLY,
        'plumbline.dev/decision': JSON.stringify({ cpus: { compute: vm.count }, padding: vm.padding }),
      },
      ownerReferences: [vmiOwner(vm.name, `vmi-${vm.uid}`)],
    },
    spec: {
      schedulerName: 'plumbline-scheduler',
      containers: [{ name: 'compute', resources: { requests: amounts, limits: { ...amounts } } }],
    },
  } as unknown as Pod;
}

/** A running launcher with a CPU mask, and no other annotation. */
export function maskedPod(vm: Pick<InventedVm, 'namespace' | 'name' | 'uid'>, mask: string, nodeName: string): Pod {
  const { metadata } = launcher({ ...vm, count: 0, padding: 0 });
  const annotations = { [CPU_MASK_ANNOTATION]: mask };
  return {
    metadata: { ...metadata, annotations, labels: { 'kubevirt.io': 'virt-launcher' } },
    spec: { containers: [{ name: 'compute', resources: { requests: { cpu: '200m' } } }], nodeName },
  } as unknown as Pod;
}
