import assert from 'node:assert/strict';
import { CpuSet } from '../../../model/cpu-set.ts';
import { createHost } from '../../../model/host.ts';
import type { Admission } from '../../../model/kubelet/admission.ts';
import type { DevicePools } from '../../../model/kubelet/devices.ts';
import type { Kubelet, KubeletConfig } from '../../../model/kubelet/kubelet.ts';
import { podRequestOf } from '../../../model/kubelet/pod-request.ts';
import type { PodContainer } from '../../../model/kubelet/pod-shape.ts';
import { container, pod, predictable, simpleHost } from './fixture.ts';

const PHYSNET0 = 'physnet.plumbline.dev/physnet0';
const PHYSNET1 = 'physnet.plumbline.dev/physnet1';
const POOLS: DevicePools = new Map([
  [PHYSNET0, { devices: [{ id: '0', healthy: true, nodes: [0] }], endless: true }],
  [PHYSNET1, { devices: [{ id: '0', healthy: true, nodes: [1] }], endless: true }],
  ['example.com/bond', { devices: [{ id: '0', healthy: true, nodes: [0, 1] }], endless: true }],
]);

const topology = (policy: string, scope = 'container'): Partial<KubeletConfig> => ({
  topologyManager: { policy, scope },
});

function admitOne(kubelet: Kubelet, containers: readonly PodContainer[], init: readonly PodContainer[] = []) {
  return kubelet.admit(kubelet.initialState(POOLS), podRequestOf(pod('a', containers, init)));
}

function outcome(admission: Admission): string {
  if (!admission.admitted) return `${admission.reason}: ${admission.message}`;
  return admission.containers.map(({ name, cpus }) => `${name}=${cpus}`).join(' ');
}

/** Two NUMA nodes of four CPUs, cores of two threads, 0-1 reserved: what a real kubelet 1.36 was seen to do. */
describe('model/kubelet: admission on two NUMA nodes of four CPUs', () => {
  const host = simpleHost(2, 4);
  const cases: readonly [string, Partial<KubeletConfig>, readonly PodContainer[], string][] = [
    ['2 CPUs with physnet1 go to node 1', topology('best-effort'), [container('c', 2, { [PHYSNET1]: '1' })], 'c=4-5'],
    ['2 CPUs with physnet0 go to node 0', topology('best-effort'), [container('c', 2, { [PHYSNET0]: '1' })], 'c=2-3'],
    [
      'a device on both nodes leaves the choice',
      topology('restricted'),
      [container('c', 4, { 'example.com/bond': '1' })],
      'c=4-7',
    ],
    [
      'an odd count is refused',
      topology('best-effort'),
      [container('c', 3)],
      'SMTAlignmentError: SMT Alignment Error: requested 3 cpus not multiple cpus per core = 2',
    ],
    [
      'more whole cores than there are',
      topology('none'),
      [container('c', 8)],
      'SMTAlignmentError: SMT Alignment Error: not enough free physical CPUs: available physical CPUs = 6, requested CPUs = 8, CPUs per core = 2',
    ],
    [
      'more than a node has, under single-numa-node',
      topology('single-numa-node'),
      [container('c', 6)],
      'TopologyAffinityError: Resources cannot be allocated with Topology locality',
    ],
    [
      'more than a node has, under restricted: two nodes are the fewest',
      topology('restricted'),
      [container('c', 6)],
      'c=2-7',
    ],
    [
      'node 0 has four CPUs in all, so four may want one node: restricted takes the one that has them',
      topology('restricted'),
      [container('c', 4)],
      'c=4-7',
    ],
    [
      'both physnets have no node in common: restricted refuses',
      topology('restricted'),
      [container('c', 2, { [PHYSNET0]: '1', [PHYSNET1]: '1' })],
      'TopologyAffinityError: Resources cannot be allocated with Topology locality',
    ],
    [
      'and best-effort forgets about both',
      topology('best-effort'),
      [container('c', 2, { [PHYSNET0]: '1', [PHYSNET1]: '1' })],
      'c=2-3',
    ],
    [
      'an unknown resource is none of the kubelet’s business',
      topology('restricted'),
      [container('c', 2, { 'x.dev/y': '1' })],
      'c=2-3',
    ],
    ['half a CPU runs on the shared pool', topology('single-numa-node'), [container('c', '500m')], 'c='],
  ];
  for (const [name, config, containers, expected] of cases) {
    it(name, () => assert.equal(outcome(admitOne(predictable(host, config), containers)), expected));
  }

  it('without full-pcpus-only single threads are given, broken cores first', () => {
    const plain = { cpuManager: { policy: 'static' } };
    assert.equal(outcome(admitOne(predictable(host, plain), [container('c', 3), container('d', 1)])), 'c=2-4 d=5');
  });

  it('without enough CPUs a plain static kubelet says so in its own words', () => {
    const plain = { cpuManager: { policy: 'static' } };
    assert.equal(
      outcome(admitOne(predictable(host, plain), [container('c', 7)])),
      'UnexpectedAdmissionError: Allocate failed due to not enough cpus available to satisfy request: requested=7, available=6, which is unexpected',
    );
  });

  it('the policy none gives no CPUs', () => {
    assert.equal(outcome(admitOne(predictable(host, { cpuManager: { policy: 'none' } }), [container('c', 4)])), 'c=');
  });

  it('one container without equal limits: no container is pinned', () => {
    const injected = { name: 'proxy', resources: { requests: { cpu: '100m' } } };
    assert.equal(outcome(admitOne(predictable(host), [container('c', 2), injected])), 'c= proxy=');
  });

  it('pod-level resources: the static CPU manager passes such a pod by', () => {
    const kubelet = predictable(host, topology('restricted'));
    const request = podRequestOf({
      metadata: { uid: 'a' },
      spec: { containers: [container('c', 2)], resources: { limits: { cpu: '2', memory: '1Gi' } } },
    });
    assert.equal(request.guaranteed, true);
    assert.equal(outcome(kubelet.admit(kubelet.initialState(), request)), 'c=');
  });
});

describe('model/kubelet: init containers', () => {
  const init = container('init', 4);
  const app = container('app', 4);

  it('init 4 and app 4 with 4 free are refused under full-pcpus-only: the kubelet requests the cores twice', () => {
    const kubelet = predictable(simpleHost(1, 6));
    assert.equal(
      outcome(admitOne(kubelet, [app], [init])),
      'SMTAlignmentError: SMT Alignment Error: not enough free physical CPUs: available physical CPUs = 0, requested CPUs = 4, CPUs per core = 2',
    );
  });

  it('with 8 free they are accepted and share the same CPUs', () => {
    assert.equal(outcome(admitOne(predictable(simpleHost(1, 10)), [app], [init])), 'init=2-5 app=2-5');
  });

  it('the surplus of a larger init container stays busy until the pod has gone', () => {
    const kubelet = predictable(simpleHost(1, 10));
    const start = kubelet.initialState();
    const admission = kubelet.admit(start, podRequestOf(pod('a', [container('app', 2)], [init])));
    assert.ok(admission.admitted);
    assert.equal(`${admission.state.defaultSet}`, '0-1,6-9');
    assert.equal(`${kubelet.remove(admission.state, 'a').defaultSet}`, `${start.defaultSet}`);
  });

  it('a sidecar keeps its CPUs, so the app gets others', () => {
    const sidecar = { ...container('side', 2), restartPolicy: 'Always' };
    assert.equal(
      outcome(admitOne(predictable(simpleHost(1, 8)), [container('app', 2)], [sidecar])),
      'side=2-3 app=4-5',
    );
  });

  it('an init container after a sidecar does not get the sidecar’s CPUs', () => {
    const sidecar = { ...container('side', 2), restartPolicy: 'Always' };
    assert.equal(
      outcome(admitOne(predictable(simpleHost(1, 12)), [container('app', 2)], [container('init', 2), sidecar])),
      'init=2-3 side=2-3 app=4-5',
    );
  });
});

describe('model/kubelet: what a kubelet remembers', () => {
  it('a restart re-checks running pods and refuses one larger than what is free', () => {
    const kubelet = predictable(simpleHost(1, 8));
    const request = podRequestOf(pod('a', [container('c', 4)]));
    const first = kubelet.admit(kubelet.initialState(), request);
    assert.ok(first.admitted);
    assert.match(outcome(kubelet.admit(first.state, request)), /^SMTAlignmentError: .*available physical CPUs = 2, /);
  });

  it('admitting does not change the state that was passed in; a refused pod leaves no trace', () => {
    const kubelet = predictable(simpleHost(1, 8));
    const state = kubelet.initialState();
    kubelet.admit(state, podRequestOf(pod('a', [container('c', 4)])));
    assert.equal(`${state.defaultSet}`, '0-7');
    assert.equal(kubelet.admit(state, podRequestOf(pod('b', [container('c', 2), container('d', 8)]))).admitted, false);
    assert.equal(`${state.defaultSet}`, '0-7');
  });

  it('removing an unknown pod changes nothing', () => {
    const kubelet = predictable(simpleHost(1, 8));
    const state = kubelet.initialState();
    assert.equal(`${kubelet.remove(state, 'unknown').defaultSet}`, '0-7');
  });

  it('strict-cpu-reservation keeps reserved CPUs out of the shared pool', () => {
    const options = { 'strict-cpu-reservation': 'true' };
    const kubelet = predictable(simpleHost(1, 8), { cpuManager: { policy: 'static', options } });
    assert.equal(`${kubelet.initialState().defaultSet}`, '2-7');
  });
});

describe('model/kubelet: predicts known defects', () => {
  const plain = { cpuManager: { policy: 'static' } };

  it('sockets of different size: one that has the average free is taken whole, a reserved CPU with it', () => {
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

  it('a hybrid part counts as one without SMT: a half-used core is taken whole', () => {
    const host = createHost({
      cells: [{ id: 0, cpus: '0-5' }],
      cores: ['0-1', '2-3', '4', '5'],
    });
    const kubelet = predictable(host, { ...plain, reserved: CpuSet.of([0]) });
    assert.equal(kubelet.topology.cpusPerCore, 1);
    assert.equal(outcome(admitOne(kubelet, [container('c', 2)])), 'c=0-1');
  });

  it('reserved CPUs that split a core: their sibling threads are assigned, full-pcpus-only or not', () => {
    const kubelet = predictable(simpleHost(2, 4), { reserved: CpuSet.parse('0,2'), ...topology('best-effort') });
    assert.equal(outcome(admitOne(kubelet, [container('c', 2)])), 'c=1,3');
  });
});

describe('model/kubelet: pod scope', () => {
  const two = [container('a', 2), container('b', 4)];

  it('one hint serves all containers: six CPUs need both nodes', () => {
    const kubelet = predictable(simpleHost(2, 4), topology('single-numa-node', 'pod'));
    assert.match(outcome(admitOne(kubelet, two)), /^TopologyAffinityError/);
  });

  it('in container scope each container finds its own node', () => {
    const kubelet = predictable(simpleHost(2, 4), topology('single-numa-node', 'container'));
    assert.equal(outcome(admitOne(kubelet, two)), 'a=2-3 b=4-7');
  });

  it('a device of one container draws the whole pod', () => {
    const kubelet = predictable(simpleHost(2, 8), topology('restricted', 'pod'));
    const containers = [container('a', 2), container('b', 2, { [PHYSNET1]: '1' })];
    assert.equal(outcome(admitOne(kubelet, containers)), 'a=8-9 b=10-11');
  });
});
