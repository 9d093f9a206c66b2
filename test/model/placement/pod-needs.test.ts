import assert from 'node:assert/strict';
import { PLACED_RESOURCE, PLACEMENT_ANNOTATION, physnetResource, TUNNEL_RESOURCE } from '../../../model/names.ts';
import { isExclusive, placementNeedsOf, readableNeedsOf } from '../../../model/placement/preferences.ts';
import type { PodShape } from '../../../model/shapes.ts';
import { container } from '../kubelet/fixture.ts';

const LAUNCHER = { 'kubevirt.io': 'virt-launcher' };
const WHOLE = { 'kubevirt.io/CPUManagerPolicyBetaOptions': 'full-pcpus-only' };

interface Parts {
  readonly cpu?: number | string;
  readonly limits?: Record<string, string>;
  readonly labels?: Record<string, string>;
  readonly annotations?: Record<string, string>;
  readonly nodeSelector?: Record<string, string>;
  readonly init?: number;
}
const podOf = ({ cpu = 2, limits = {}, labels, annotations, nodeSelector, init }: Parts): PodShape => ({
  metadata: { uid: 'a', labels, annotations },
  spec: {
    containers: [container('c', cpu, limits)],
    ...(init !== undefined && { initContainers: [container('i', init)] }),
    nodeSelector,
  },
});
const needsOf = (parts: Parts) => placementNeedsOf(podOf(parts));

describe('model/placement: needs from a pod', () => {
  const sharing: [what: string, parts: Parts, mayShare: boolean][] = [
    ['a pod with whole CPUs and no other wish', {}, true],
    ['a pod without whole CPUs', { cpu: '500m' }, false],
    ['a pod with a network', { limits: { [TUNNEL_RESOURCE]: '1' } }, false],
    [
      'a pod that prefers a network',
      { annotations: { [PLACEMENT_ANNOTATION]: JSON.stringify({ preferred: [TUNNEL_RESOURCE] }) } },
      false,
    ],
    ['a pod that asks for a place', { limits: { [PLACED_RESOURCE]: '1' } }, false],
    ['a pod with another device', { limits: { 'x/nic': '1' } }, true],
    ['a pod that asks for whole cores', { annotations: { 'plumbline.dev/align': 'whole-cores' } }, false],
    ['a launcher that asks for whole cores', { labels: LAUNCHER, annotations: WHOLE }, false],
    ['a launcher without dedicated CPUs', { labels: LAUNCHER }, true],
    [
      'a launcher of KubeVirt 1.7 with dedicated CPUs',
      { labels: LAUNCHER, nodeSelector: { cpumanager: 'true' } },
      false,
    ],
    [
      'a launcher of KubeVirt 1.8 or later with dedicated CPUs',
      { labels: LAUNCHER, nodeSelector: { 'kubevirt.io/cpumanager': 'true' } },
      false,
    ],
    ['a launcher with another selector', { labels: LAUNCHER, nodeSelector: { cpumanager: 'false' } }, true],
    ['another pod with that selector', { nodeSelector: { cpumanager: 'true' } }, true],
  ];
  for (const [what, parts, mayShare] of sharing)
    it(`${what} ${mayShare ? 'may' : 'may not'} share CPUs`, () => assert.equal(needsOf(parts).mayShare, mayShare));

  it('have whole cores if the pod is padded', () => {
    const whole = (parts: Parts) => needsOf({ labels: LAUNCHER, annotations: WHOLE, ...parts }).wholeCores;
    assert.deepEqual([whole({ cpu: 4 }), whole({ cpu: 3 }), whole({ cpu: 4, init: 3 })], [true, false, true]);
    assert.equal(whole({ annotations: {} }), false);
  });

  it('have networks and whether the guest spans NUMA nodes', () => {
    const preferred = [physnetResource('west')];
    const { networks, spansCells } = needsOf({
      limits: { [physnetResource('east')]: '1' },
      annotations: {
        [PLACEMENT_ANNOTATION]: JSON.stringify({ preferred, spansCells: true, interfaces: { [preferred[0]!]: 'n' } }),
      },
    });
    assert.deepEqual(networks, [
      { name: '', kind: 'physnet', physnet: 'east', affinity: 'required' },
      { name: 'n', kind: 'physnet', physnet: 'west', affinity: 'preferred' },
    ]);
    assert.deepEqual([spansCells, needsOf({}).spansCells], [true, false]);
  });

  it('have a mask only of a launcher without exclusive CPUs', () => {
    const annotations = { 'plumbline.dev/cpu-mask': '1:2' };
    const has = (parts: Parts) => needsOf({ annotations, ...parts }).mask !== undefined;
    assert.deepEqual(
      [has({ cpu: '500m', labels: LAUNCHER }), has({ cpu: 2, labels: LAUNCHER }), has({ cpu: '500m' })],
      [true, false, false],
    );
  });

  it('are unknown if an amount or a mask cannot be read', () => {
    const broken = [{ cpu: 'x' }, { cpu: '500m', labels: LAUNCHER, annotations: { 'plumbline.dev/cpu-mask': 'x' } }];
    for (const parts of broken) assert.equal(readableNeedsOf(podOf(parts)), undefined);
    assert.deepEqual(readableNeedsOf(podOf({})), needsOf({}));
    assert.throws(() => readableNeedsOf(undefined as unknown as PodShape), TypeError);
  });

  it('are exclusive CPUs if some container has some', () => {
    assert.deepEqual([isExclusive(needsOf({})), isExclusive(needsOf({ cpu: '500m' }))], [true, false]);
    assert.equal(isExclusive(needsOf({ cpu: '500m', init: 2 })), true);
  });
});
