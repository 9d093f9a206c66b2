import assert from 'node:assert/strict';
import type { Pod } from '../../../kube/resources.ts';
import { PLACED_RESOURCE } from '../../../model/names.ts';
import { NeedsReader } from '../../../scheduler-plugin/cluster/pod-needs.ts';
import { podOf, withUid } from '../extender-fixture.ts';

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
    ['a pod in a system namespace', withUid(podOf('4'), 'a', { namespace: 'kube-system' }), false],
  ];
  for (const [what, pod, needs] of SCOPE_ALL) {
    it(`${what}: ${needs ? 'yes' : 'no'}`, () => assert.equal(new NeedsReader('all').read(pod).dpu, needs));
  }

  it('exempt namespaces match by prefix; a pod without a namespace is in none of them', () => {
    const reader = new NeedsReader('all', ['openshift-*', 'infra']);
    const needs = (namespace: string | undefined) => reader.read(withUid(podOf('4'), 'a', { namespace })).dpu;
    assert.deepEqual(['openshift-dns', 'openshift', 'infra', 'infra-2', undefined].map(needs), [
      false,
      true,
      false,
      true,
      true,
    ]);
  });

  const amounts = (name: string) => ({ [name]: '1' });
  const ATTACHED: readonly [string, Pod, boolean][] = [
    ['KubeVirt’s devices', podOf('4', ['devices.kubevirt.io/kvm', 'devices.kubevirt.io/tun']), false],
    ['the resource of pods that opted in', podOf('4', [PLACED_RESOURCE]), false],
    ['a device', podOf('4', ['openshift.io/dpu_vfs']), true],
    ['a device of an init container', withResources('initContainers', { requests: amounts('a.b/vf') }), true],
  ];
  for (const [what, pod, needs] of ATTACHED) {
    it(`with the scope attached, ${what}: ${needs ? 'yes' : 'no'}`, () => {
      assert.equal(new NeedsReader('attached').read(pod).dpu, needs);
    });
  }
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
