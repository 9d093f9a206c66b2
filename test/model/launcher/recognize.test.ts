import assert from 'node:assert/strict';
import { integralAt, podResourcesOf } from '../../../model/launcher/containers.ts';
import {
  fitsLauncher,
  isLauncher,
  READ_ANNOTATIONS,
  recognizeLauncher,
  vmiObject,
} from '../../../model/launcher/recognize.ts';
import { NETWORKS_ANNOTATION } from '../../../model/networks/attachments.ts';
import type { ContainerShape, PodShape } from '../../../model/shapes.ts';
import { CPU, container, launcher } from '../admission/fixture.ts';

describe('recognition of a launcher', () => {
  const { pod } = launcher();
  const [owner] = pod.metadata.ownerReferences!;
  const withMeta = (metadata: object) => ({ ...pod, metadata: { ...pod.metadata, ...metadata } });
  const labelled = (labels: Record<string, string>) => withMeta({ labels: { ...pod.metadata.labels, ...labels } });
  const owned = (...ownerReferences: object[]) => withMeta({ ownerReferences });
  const provisioning = (value: string) => withMeta({ annotations: { 'kubevirt.io/ephemeral-provisioning': value } });

  for (const [what, candidate, expected] of [
    ['a launcher', pod, 'run'],
    ['a migration target', labelled({ 'kubevirt.io/migrationJobUID': '' }), 'migration-target'],
    ['ephemeral provisioning', provisioning('true'), 'provisioning'],
    ['no labels', withMeta({ labels: undefined }), 'no-launcher-label'],
    ['a hot-plug pod', labelled({ 'kubevirt.io': 'hotplug-disk' }), 'hot-plug'],
    ['an owner of another kind', owned({ ...owner, kind: 'VirtualMachine' }), 'no-vmi-owner'],
    ['a VMI of a foreign API group', owned({ ...owner, apiVersion: 'example.com/v1' }), 'no-vmi-owner'],
    ['no compute container', launcher({ containers: [container('other', '9')] }).pod, 'no-compute-container'],
  ] as const) {
    it(`${what}: ${expected}`, () => {
      const recognition = recognizeLauncher(candidate);
      assert.equal(recognition.kind === 'launcher' ? recognition.purpose : recognition.why, expected);
      assert.equal(isLauncher(candidate.metadata), !['no-launcher-label', 'hot-plug'].includes(expected));
    });
  }

  it('W7: takes the VMI from the controller owner, not from a label', () => {
    const vmi = { name: 'vm', uid: 'u1' };
    const recognition = recognizeLauncher(labelled({ 'vm.kubevirt.io/name': 'another-host-name' }));
    assert.deepEqual(recognition, { kind: 'launcher', vmi, compute: 0, purpose: 'run' });
    const about = { apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachineInstance', namespace: 'ns' };
    assert.deepEqual(vmiObject('ns', vmi), { ...about, ...vmi });
  });
});
describe('a launcher matches the current state of its VMI', () => {
  const vmi = (cpu: object, annotations = {}, networks?: object[]) => ({
    metadata: { annotations },
    spec: { domain: { cpu }, ...(networks && { networks: networks as never }) },
  });
  const fits = (annotations: Record<string, string>, cpus: string, owner: ReturnType<typeof vmi>) => {
    const { pod, compute } = launcher({ annotations, containers: [container('a', '1'), container('compute', cpus)] });
    const own = integralAt(podResourcesOf(pod), { list: 'containers', index: compute })?.cpus;
    return fitsLauncher(pod, own, 'ns', owner);
  };

  it('if the annotations that are read are equal', () => {
    for (const name of READ_ANNOTATIONS) {
      const owner = vmi({ cores: 2 }, { [name]: '{}' });
      assert.equal(fits({ [name]: '{}' }, '1', owner), true);
      assert.equal(fits({ [name]: '{ }' }, '1', owner), false);
      assert.equal(fits({}, '1', owner), false);
      assert.equal(fits({ [name]: '{}' }, '1', vmi({ cores: 2 })), false);
    }
    assert.equal(fits({ other: '' }, '1', vmi({ cores: 2 })), true);
  });

  it('if its CPUs are those of the VMI, or padded to cores of up to 8 threads', () => {
    // 8 vCPUs and one for the emulator.
    for (const cpus of ['9', '10', '12', '16']) assert.equal(fits({}, cpus, vmi(CPU)), true, cpus);
    for (const cpus of ['8', '11', '14', '18', '9500m']) assert.equal(fits({}, cpus, vmi(CPU)), false, cpus);
    assert.equal(fits({}, '7', vmi({ ...CPU, dedicatedCpuPlacement: false })), true);
  });

  const networks = vmi({ cores: 2 }, {}, [
    { name: 'a', pod: {} },
    { name: 'b', multus: { networkName: 'east' } },
    { name: 'c', multus: { networkName: 'x/west' } },
  ]);
  for (const [what, attached, owner, expected] of [
    ['its own with their namespaces', 'ns/east,x/west', networks, true],
    ['one in another namespace', 'east,west', networks, false],
    ['none', '', networks, true],
  ] as const) {
    it(`if each of its networks is one of the VMI: ${what}`, () =>
      assert.equal(fits({ [NETWORKS_ANNOTATION]: attached }, '1', owner), expected));
  }
});

const podOf = (...containers: readonly ContainerShape[]): PodShape => ({ metadata: {}, spec: { containers } });
const cpuOnly: ContainerShape = { name: 'c', resources: { limits: { cpu: '1' } } };
describe('containers with whole CPUs', () => {
  it('are listed, init containers first, up to the limit of a host', () => {
    const containers = ['1', '65535', '0', '500m'].map((cpu, i) => container(`c${i}`, cpu));
    const pod = { metadata: {}, spec: { containers, initContainers: [container('i', '2'), { name: 'none' }] } };
    assert.deepEqual(podResourcesOf(pod).integral, [
      { list: 'initContainers', index: 0, name: 'i', cpus: 2, hasEqualLimit: true },
      { list: 'containers', index: 0, name: 'c0', cpus: 1, hasEqualLimit: true },
      { list: 'containers', index: 1, name: 'c1', cpus: 65_535, hasEqualLimit: true },
    ]);
    for (const cpu of ['65536', '9223372036854775807', '1E'])
      assert.throws(() => podResourcesOf(podOf(container('c', cpu))), /CPUs of container c .*fewer than 65536/);
  });

  for (const [what, requests, limits, expected] of [
    ['a higher limit', { cpu: '1' }, { cpu: '2' }, false],
    ['no request', undefined, { cpu: '2' }, true],
    ['no limit', { cpu: '1' }, undefined, false],
  ] as const) {
    it(`have request and limit compared as amounts: ${what}`, () => {
      const resources = { ...(requests && { requests }), ...(limits && { limits }) };
      assert.equal(podResourcesOf(podOf({ name: 'c', resources })).integral[0]?.hasEqualLimit, expected);
    });
  }
});
describe('exclusive CPUs of a pod', () => {
  for (const [what, pod, obstacles, exclusive] of [
    ['whole CPUs', podOf(container('c', '4')), [], true],
    ['a fraction, with whole CPUs in another container', podOf(container('a', '500m'), container('b', '1')), [], true],
    ['only a fraction', podOf(container('a', '4500m')), [], false],
    ['no limits', podOf(container('a', '4'), { name: 'c' }), ['c: it has no cpu limit'], false],
    ['no limit of memory', podOf(cpuOnly), ['c: it has no memory limit'], false],
  ] as const) {
    it(`${what}: ${exclusive}`, () => {
      const resources = podResourcesOf(pod);
      const texts = resources.obstacles.map((obstacle) => `${obstacle.container}: ${obstacle.why}`);
      assert.deepEqual([texts, resources.exclusive], [obstacles, exclusive]);
    });
  }
});
