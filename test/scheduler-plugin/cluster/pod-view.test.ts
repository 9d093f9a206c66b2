import assert from 'node:assert/strict';
import type { Pod } from '../../../kube/resources.ts';
import { PLACED_RESOURCE } from '../../../model/names.ts';
import { NeedsReader } from '../../../scheduler-plugin/cluster/pod-needs.ts';
import { observedPod, podViewOf } from '../../../scheduler-plugin/cluster/pod-view.ts';
import { podOf, viewOf, withUid } from '../extender-fixture.ts';

const SCHEDULED = { type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message: '0/60 nodes' };
describe('a pod without exclusive CPUs', () => {
  const web = podOf('500m');
  const vm = podOf('500m', ['devices.kubevirt.io/kvm']);
  const DPU = { ...SCHEDULED, message: '0/3 nodes are available: 3 DPU not ready: dead, last renewal 60 s ago.' };
  const CASES: readonly [label: string, pod: Pod, conditions: object[], isKept: boolean][] = [
    ['a launcher for which the scheduler finds no node', vm, [{ ...SCHEDULED, type: 'Ready' }, SCHEDULED], true],
    ['a launcher with another condition', vm, [{ ...SCHEDULED, type: 'Ready' }], false],
    ['a launcher with a node', vm, [{ ...SCHEDULED, status: 'True' }], false],
    ['a launcher without a condition', vm, [], false],
    ['a gated launcher', vm, [{ ...SCHEDULED, reason: 'SchedulingGated' }], false],
    ['a launcher whose scheduler failed', vm, [{ ...SCHEDULED, reason: 'SchedulerError' }], false],
    ['an ordinary pod that fits nowhere', web, [SCHEDULED], false],
    ['an ordinary pod that was refused for a DPU', web, [DPU], true],
  ];
  for (const [label, pod, conditions, isKept] of CASES)
    it(`${isKept ? 'is kept' : 'is not kept'}: ${label}`, () => {
      const view = viewOf(pod, { conditions });
      assert.deepEqual([view !== undefined, view?.mayBeRefused ?? false], [isKept, isKept]);
    });
});
it('a pod with more than 48 containers cannot be read', () => {
  const crowd = (length: number) => {
    const containers = Array.from({ length }, (_, i) => ({ name: `c${i}` }));
    return observedPod.safeParse({ ...podOf('4'), spec: { containers } });
  };
  assert.match(String(crowd(49).error), /more than 48 containers/);
  assert.ok(crowd(48).success);
});
describe('a pod with exclusive CPUs', () => {
  const view = (status: object, metadata: object = {}, spec: object = {}) => {
    const pod = withUid(podOf('4'), 'a', metadata);
    return viewOf({ ...pod, spec: { ...pod.spec, ...spec } } as Pod, status);
  };

  it('has no scheduler condition when it is on a node', () => {
    const scheduled = view({ phase: 'Running', conditions: [SCHEDULED] }, {}, { nodeName: 'n1' });
    assert.deepEqual([scheduled?.dropped, scheduled?.pending, scheduled?.node], [false, false, 'n1']);
  });

  it('may have been refused by an extender only if the scheduler asks one about it', () => {
    assert.equal(viewOf(podOf('4'), { conditions: [SCHEDULED] })?.mayBeRefused, false);
    const gated = { conditions: [{ ...SCHEDULED, reason: 'SchedulingGated' }] };
    assert.equal(viewOf(podOf('4', ['devices.kubevirt.io/kvm']), gated)?.mayBeRefused, false);
  });

  it('counts as dropped by the scheduler if its condition has a cause other than that no node fits', () => {
    const dropped = [
      { ...SCHEDULED, message: 'binding volumes: timed out' },
      { type: 'PodScheduled', status: 'False' },
    ];
    for (const condition of dropped) assert.equal(view({ conditions: [condition] })?.dropped, true);
    for (const conditions of [[SCHEDULED], [{ ...SCHEDULED, status: 'True' }], []])
      assert.equal(view({ conditions })?.dropped, false);
  });

  it('is kept if its kubelet refused it for a reason that depends on the node’s resources', () => {
    for (const reason of ['SMTAlignmentError', 'NodeShutdown', 'OutOfopenshift.io/sriov_vf']) {
      const { rejected, terminal } = view({ phase: 'Failed', reason }) ?? {};
      assert.deepEqual([rejected, terminal], [reason, true]);
    }
  });

  it('is not kept if it ended in another way or has no uid', () => {
    const reasons = ['Evicted', 'NodePorts', 'OutOf the text of a tenant', `OutOf${'x'.repeat(101)}`, '', undefined];
    for (const reason of reasons) assert.equal(view({ phase: 'Failed', reason }), undefined, reason);
    assert.equal(view({ phase: 'Succeeded', reason: 'SMTAlignmentError' }), undefined);
    assert.equal(view({}, { uid: undefined }), undefined);
    assert.equal(view({ phase: 'Running', reason: 'SMTAlignmentError' })?.rejected, undefined);
  });

  it('is not kept if an amount has an unknown form', () => {
    assert.equal(viewOf(podOf('four')), undefined);
    const broken = { read: () => assert.fail('a mistake of the program') };
    assert.throws(() => podViewOf(observedPod.parse({ ...podOf('4'), status: {} }), broken), /a mistake/);
  });
});

const owned = (...owners: { kind: string; controller?: boolean }[]): Pod =>
  withUid(podOf('4'), 'a', {
    ownerReferences: owners.map((owner) => ({ apiVersion: 'apps/v1', name: 'o', uid: 'o', ...owner })),
  });
const withResources = (key: 'containers' | 'initContainers', resources: object): Pod => {
  const pod = podOf('4');
  return { ...pod, spec: { ...pod.spec, [key]: [...(pod.spec[key] ?? []), { name: 'more', resources }] } } as Pod;
};
describe('whether a pod needs the DPU of its node', () => {
  const SCOPE_ALL: readonly [string, Pod, boolean][] = [
    ['a pod on the pod network', podOf('4'), true],
    ['a pod on the host network', { ...podOf('4'), spec: { ...podOf('4').spec, hostNetwork: true } }, false],
    ['a pod of a DaemonSet', owned({ kind: 'DaemonSet', controller: true }), false],
    ['a pod that a DaemonSet does not control', owned({ kind: 'DaemonSet', controller: false }), true],
    ...['kube-system', 'ovn-kubernetes', 'plumbline-system'].map((namespace): [string, Pod, boolean] => [
      `a pod in ${namespace}, which the CNI gate lets pass`,
      withUid(podOf('4'), 'a', { namespace }),
      false,
    ]),
  ];
  for (const [what, pod, needs] of SCOPE_ALL)
    it(`${what}: ${needs ? 'yes' : 'no'}`, () => assert.equal(new NeedsReader('all').read(pod).dpu, needs));

  it('exempt namespaces match by prefix; a pod without a namespace is in none of them', () => {
    const reader = new NeedsReader('all', ['openshift-*', 'infra']);
    const needs = (namespace: string | undefined) => reader.read(withUid(podOf('4'), 'a', { namespace })).dpu;
    const [exempt, others] = [['openshift-dns', 'infra'].map(needs), ['openshift', 'infra-2', undefined].map(needs)];
    assert.deepEqual([exempt, others], [Array(2).fill(false), Array(3).fill(true)]);
  });

  const amounts = (name: string) => ({ [name]: '1' });
  const ATTACHED: readonly [string, Pod, boolean][] = [
    ['KubeVirt’s devices', podOf('4', ['devices.kubevirt.io/kvm', 'devices.kubevirt.io/tun']), false],
    ['the resource of pods that opted in', podOf('4', [PLACED_RESOURCE]), false],
    ['a device', podOf('4', ['openshift.io/dpu_vfs']), true],
    ['a device of an init container', withResources('initContainers', { requests: amounts('a.b/vf') }), true],
  ];
  for (const [what, pod, needs] of ATTACHED)
    it(`with the scope attached, ${what}: ${needs ? 'yes' : 'no'}`, () => {
      assert.equal(new NeedsReader('attached').read(pod).dpu, needs);
    });
});
describe('the needs of similar pods', () => {
  const reader = new NeedsReader('all');

  it('share common data, and have their own uids', () => {
    const [one, other] = ['a', 'b'].map((uid) => reader.read(withUid(podOf('4'), uid)));
    assert.deepEqual([one?.request.uid, other?.request.uid], ['a', 'b']);
    assert.equal(one?.request.containers, other?.request.containers);
    assert.equal(one?.networks, other?.networks);
    assert.deepEqual([one?.exclusive, reader.read(podOf('500m')).exclusive], [true, false]);
  });
});
