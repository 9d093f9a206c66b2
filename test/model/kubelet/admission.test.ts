import assert from 'node:assert/strict';
import { CpuSet } from '../../../model/cpu-set.ts';
import { createHost } from '../../../model/host.ts';
import type { Admission } from '../../../model/kubelet/admission.ts';
import type { DevicePools } from '../../../model/kubelet/devices.ts';
import type { Kubelet, KubeletConfig } from '../../../model/kubelet/kubelet.ts';
import { podRequestOf } from '../../../model/kubelet/pod-request.ts';
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

describe('init containers', () => {
  const init = container('init', 4);
  const app = container('app', 4);

  it('of 4 CPUs before an app of 4 are refused under full-pcpus-only with 4 free, because the kubelet requests the cores twice', () => {
    const kubelet = predictable(simpleHost(1, 6));
    assert.equal(
      outcome(admitOne(kubelet, [app], [init])),
      'SMTAlignmentError: SMT Alignment Error: not enough free physical CPUs: available physical CPUs = 0, requested CPUs = 4, CPUs per core = 2',
    );
  });
});

describe('the state of a kubelet', () => {
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
    const host = createHost({
      cells: [
        { id: 0, cpus: '0-1' },
        { id: 1, cpus: '2-3' },
        { id: 2, cpus: '4-5' },
      ],
      cores: ['0-1', '2-3', '4-5'],
      sockets: [
        { id: 0, cpus: '0-3' },
        { id: 1, cpus: '4-5' },
      ],
    });
    assert.equal(
      outcome(admitOne(predictable(host, { ...plain, reserved: CpuSet.of([0]) }), [container('c', 4)])),
      'c=0-3',
    );
  });

  it('a hybrid host counts as one without SMT, so a half-used core is assigned whole', () => {
    const host = createHost({
      cells: [{ id: 0, cpus: '0-5' }],
      cores: ['0-1', '2-3', '4', '5'],
    });
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
