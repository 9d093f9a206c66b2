import assert from 'node:assert/strict';
import { CpuSet } from '../../../model/cpu-set.ts';
import { createHost } from '../../../model/host.ts';
import type { Admission } from '../../../model/kubelet/admission.ts';
import type { DevicePool, DevicePools } from '../../../model/kubelet/devices.ts';
import type { Kubelet, KubeletConfig } from '../../../model/kubelet/kubelet.ts';
import { MemoryManager } from '../../../model/kubelet/memory-manager.ts';
import type { CellMemory } from '../../../model/kubelet/memory-state.ts';
import { type PodRequest, podRequestOf } from '../../../model/kubelet/pod-request.ts';
import { behaviourOf } from '../../../model/kubelet/versions.ts';
import type { ContainerShape } from '../../../model/shapes.ts';
import { container, pod, predictable, simpleHost } from './fixture.ts';

const PHYSNET1 = 'physnet.plumbline.dev/physnet1';
const POOLS: DevicePools = new Map([[PHYSNET1, { devices: [{ id: '0', healthy: true, nodes: [1] }], endless: true }]]);
const topology = (policy: string, scope = 'container'): Partial<KubeletConfig> => ({
  topologyManager: { policy, scope },
});
function admitOne(kubelet: Kubelet, containers: readonly ContainerShape[], init: readonly ContainerShape[] = []) {
  return kubelet.admit(kubelet.initialState(POOLS), podRequestOf(pod('a', containers, init)));
}
function outcome(admission: Admission): string {
  if (!admission.admitted) return `${admission.reason}: ${admission.message}`;
  return admission.containers.map(({ name, cpus }) => `${name}=${cpus}`).join(' ');
}
describe('the state of a kubelet', () => {
  it('has the cores of an init container twice under full-pcpus-only: 4 CPUs before an app of 4, with 4 free', () => {
    const admission = admitOne(predictable(simpleHost(1, 6)), [container('app', 4)], [container('init', 4)]);
    const counts = 'available physical CPUs = 0, requested CPUs = 4, CPUs per core = 2';
    const text = `SMT Alignment Error: not enough free physical CPUs: ${counts}`;
    assert.equal(outcome(admission), `SMTAlignmentError: ${text}`);
  });

  it('includes running pods: a restart checks them again and refuses one larger than the free CPUs', () => {
    const kubelet = predictable(simpleHost(1, 8));
    const request = podRequestOf(pod('a', [container('c', 4)]));
    const first = kubelet.admit(kubelet.initialState(), request);
    assert.ok(first.admitted);
    assert.match(outcome(kubelet.admit(first.state, request)), /^SMTAlignmentError: .*available physical CPUs = 2, /);
  });
});
describe('predicts known defects', () => {
  const plain = { cpuManager: { policy: 'static' } };

  it('a socket with the average number of free CPUs is assigned whole, even with a reserved CPU, if sockets differ in size', () => {
    const groups = (...lists: string[]) => lists.map((cpus, id) => ({ id, cpus }));
    const cores = ['0-1', '2-3', '4-5'];
    const host = createHost({ cells: groups(...cores), cores, sockets: groups('0-3', '4-5') });
    const kubelet = predictable(host, { ...plain, reserved: CpuSet.of([0]) });
    assert.equal(outcome(admitOne(kubelet, [container('c', 4)])), 'c=0-3');
  });

  it('a hybrid host counts as one without SMT, so a half-used core is assigned whole', () => {
    const host = createHost({ cells: [{ id: 0, cpus: '0-5' }], cores: ['0-1', '2-3', '4', '5'] });
    const kubelet = predictable(host, { ...plain, reserved: CpuSet.of([0]) });
    assert.equal(kubelet.topology.cpusPerCore, 1);
    assert.equal(outcome(admitOne(kubelet, [container('c', 2)])), 'c=0-1');
  });

  it('siblings of reserved CPUs are assigned if reserved CPUs split a core, even under full-pcpus-only', () => {
    const kubelet = predictable(simpleHost(2, 4), { reserved: CpuSet.parse('0,2'), ...topology('best-effort') });
    assert.equal(outcome(admitOne(kubelet, [container('c', 2)])), 'c=1,3');
  });
});
describe('pod scope', () => {
  const two = [container('a', 2), container('b', 4)];

  it('uses one hint for all containers: six CPUs need both nodes', () => {
    const kubelet = predictable(simpleHost(2, 4), topology('single-numa-node', 'pod'));
    assert.match(outcome(admitOne(kubelet, two)), /^TopologyAffinityError/);
  });

  it('moves the whole pod to the device of one container', () => {
    const kubelet = predictable(simpleHost(2, 8), topology('restricted', 'pod'));
    const containers = [container('a', 2), container('b', 2, { [PHYSNET1]: '1' })];
    assert.equal(outcome(admitOne(kubelet, containers)), 'a=8-9 b=10-11');
  });
});

const NIC = 'example.com/nic';
/** Healthy devices d0, d1 and so on, on these NUMA nodes. */
function poolOf(...nodes: readonly (readonly number[] | undefined)[]): DevicePool {
  return { devices: nodes.map((cells, index) => ({ id: `d${index}`, healthy: true, nodes: cells })) };
}
const nics = (name: string, count: number, restartPolicy?: string): ContainerShape => ({
  ...container(name, 2, { [NIC]: `${count}` }),
  ...(restartPolicy !== undefined && { restartPolicy }),
});
function admit(
  kubelet: Kubelet,
  state: ReturnType<Kubelet['initialState']>,
  containers: ContainerShape[],
  { uid = 'a', init = [] }: { readonly uid?: string; readonly init?: ContainerShape[] } = {},
) {
  const admission = kubelet.admit(state, podRequestOf(pod(uid, containers, init)));
  const text = admission.admitted
    ? admission.containers.map(({ name, devices }) => `${name}=${[...(devices.get(NIC) ?? [])].join('+')}`).join(' ')
    : admission.message.replace(/^Allocate failed due to (.*), which is unexpected$/, '$1');
  return { text, state: admission.state, hint: admission.admitted ? admission.hint : admission.reason };
}
describe('hints of devices', () => {
  const restricted = { topologyManager: { policy: 'restricted' } };
  const hintOf = (pool: DevicePool, config = {}, cpus = 2, host = simpleHost(2, 8)) => {
    const kubelet = predictable(host, { ...restricted, ...config });
    return admit(kubelet, kubelet.initialState(new Map([[NIC, pool]])), [container('c', cpus, { [NIC]: '1' })]).hint;
  };

  it('are narrow since 1.36, so six CPUs no longer go with a NIC on one node', () => {
    // The CPUs need both nodes. The NIC's hint {0} limits this to node 0 since 1.36; before, {0,1} was offered.
    const policy = { topologyManager: { policy: 'best-effort' } };
    assert.deepEqual(hintOf(poolOf([0]), policy, 6, simpleHost(2, 4)), [0]);
    assert.deepEqual(hintOf(poolOf([0]), { ...policy, version: 'v1.35.0' }, 6, simpleHost(2, 4)), [0, 1]);
  });
});
describe('devices of a pod', () => {
  const kubelet = predictable(simpleHost(1, 16), { topologyManager: { policy: 'none' } });
  const pools = (...healthy: readonly boolean[]) => {
    const devices = healthy.map((isHealthy, i) => ({ id: `d${i}`, healthy: isHealthy, nodes: [0] }));
    return new Map<string, DevicePool>([[NIC, { devices }]]);
  };

  it('stay the same when the kubelet has restarted, and are refused after a change', () => {
    const { state } = admit(kubelet, kubelet.initialState(pools(true, true)), [nics('c', 1)]);
    const again = (count: number, ...healthy: boolean[]) =>
      admit(kubelet, { ...state, pools: pools(...healthy) }, [nics('c', count)]).text;
    assert.equal(again(1, true, true), 'c=d0');
    assert.equal(again(2, true, true), `pod "a" container "c" changed request for resource "${NIC}" from 1 to 2`);
    assert.match(again(1, false, true), /^previously allocated devices are no longer healthy; cannot allocate/);
    assert.equal(again(1, true, false), 'c=d0');
  });
});
/**
 * The effect of a preference whose device always names its NUMA node: the reason why it names it only if that does no
 * harm (ADR 0053). If a later kubelet behaves differently, these tests fail, and the decision can change.
 */
describe('a preference as a device', () => {
  const near: DevicePool = { devices: [{ id: '0', healthy: true, nodes: [0] }], endless: true };
  /** Two NUMA nodes of 8 CPUs, 0-1 reserved. The first one has two CPUs left. */
  const second = (policy: string, version: string, devices: Record<string, string>) => {
    const kubelet = predictable(simpleHost(2, 8), { topologyManager: { policy }, version });
    const empty = kubelet.initialState(new Map([[NIC, near]]));
    const filled = kubelet.admit(empty, podRequestOf(pod('first', [container('c', 4)])));
    const admission = kubelet.admit(filled.state, podRequestOf(pod('second', [container('c', 4, devices)])));
    return admission.admitted ? `${admission.containers[0]?.cpus}` : admission.reason;
  };

  for (const [policy, version, expected] of [
    ['restricted', 'v1.35.0', 'TopologyAffinityError'],
    ['single-numa-node', 'v1.35.0', 'TopologyAffinityError'],
    ['best-effort', 'v1.35.0', '6-9'],
  ] as const) {
    it(`costs a pod its NUMA node with ${policy}, ${version}: ${expected}`, () => {
      assert.equal(second(policy, version, {}), '8-11');
      assert.equal(second(policy, version, { [NIC]: '1' }), expected);
    });
  }
});

const GI = 2 ** 30;
const CELLS: readonly CellMemory[] = [
  { id: 0, memory: 9 * GI, hugePages: { 'hugepages-1Gi': 2 * GI }, reserved: { memory: GI } },
  { id: 1, memory: 9 * GI, hugePages: { 'hugepages-1Gi': 4 * GI }, reserved: { memory: GI } },
];
describe('the static memory manager', () => {
  const kubeletOf = (policy: string, cells = CELLS, scope = 'container') =>
    predictable(simpleHost(2, 8), { topologyManager: { policy, scope }, memoryManager: { policy: 'Static', cells } });
  const request = (uid: string, memory: string, pages?: string) =>
    podRequestOf(pod(uid, [container('c', 2, { memory, ...(pages && { 'hugepages-1Gi': pages }) })]));
  const admitTo = (kubelet: Kubelet, wanted: PodRequest, state = kubelet.initialState()) =>
    kubelet.admit(state, wanted);
  const maskOf = (admission: Admission, uid: string) => admission.state.memory?.blocks.get(uid)?.get('c')?.[0]?.mask;

  it('huge pages move the CPUs to the node that has them', () => {
    const admission = admitTo(kubeletOf('single-numa-node'), request('a', '1Gi', '3Gi'));
    assert.ok(admission.admitted);
    assert.deepEqual([admission.hint, `${admission.containers[0]?.cpus}`], [[1], '8-9']);
  });

  for (const [what, version, count, expected] of [
    ['of two containers before 1.38: no preference', 'v1.37.0', 2, []],
    ['of two containers from 1.38 on: where it is', 'v1.38.0-alpha.1', 2, [0b10]],
    ['of one container: where it is', 'v1.37.0', 1, [0b10]],
  ] as const) {
    it(`the memory of a pod after a restart, ${what}`, () => {
      const limits = { memory: '1Gi', 'hugepages-1Gi': '2Gi' };
      const containers = ['a', 'b'].slice(0, count).map((name) => container(name, 2, limits));
      const podRequest = podRequestOf(pod('p', containers));
      const cells = CELLS.map((cell) => ({ ...cell, hugePages: { 'hugepages-1Gi': cell.id * 4 * GI } }));
      const { state } = admitTo(kubeletOf('single-numa-node', cells, 'pod'), podRequest);
      assert.ok(state.memory);
      const hints = new MemoryManager(state.memory, podRequest, behaviourOf(version)!).podHints();
      const masks = [...(hints?.values() ?? [])].flatMap((list) => (list ?? []).map(({ mask }) => mask));
      assert.deepEqual([...new Set(masks)], expected);
    });
  }

  it('memory of a NUMA node without CPUs counts: a large request is spread onto it', () => {
    const bare = [...CELLS, { id: 4, memory: 16 * GI }];
    assert.equal(maskOf(admitTo(kubeletOf('none', bare), request('a', '20Gi')), 'a'), 0b101);
    assert.equal(admitTo(kubeletOf('none'), request('a', '20Gi')).admitted, false);
  });
});
