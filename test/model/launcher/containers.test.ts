import assert from 'node:assert/strict';
import { podResourcesOf } from '../../../model/launcher/containers.ts';
import type { ContainerShape, PodShape } from '../../../model/shapes.ts';
import { container } from '../admission/facts.ts';

const podOf = (...containers: readonly ContainerShape[]): PodShape => ({ metadata: {}, spec: { containers } });
const limited = (limits: Record<string, string>, requests?: Record<string, string>): ContainerShape => ({
  name: 'c',
  resources: { limits, ...(requests && { requests }) },
});

describe('containers with whole CPUs', () => {
  it('are listed, init containers first, up to the limit of a host', () => {
    const containers = ['1', '65535', '65536', '0', '500m'].map((cpu, i) => container(`c${i}`, cpu));
    const pod = { metadata: {}, spec: { containers, initContainers: [container('i', '2'), { name: 'none' }] } };
    assert.deepEqual(podResourcesOf(pod).integral, [
      { list: 'initContainers', index: 0, name: 'i', cpus: 2, hasEqualLimit: true },
      { list: 'containers', index: 0, name: 'c0', cpus: 1, hasEqualLimit: true },
      { list: 'containers', index: 1, name: 'c1', cpus: 65_535, hasEqualLimit: true },
    ]);
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
    ['no limit of memory', podOf(limited({ cpu: '1' })), ['c: it has no memory limit'], false],
  ] as const) {
    it(`${what}: ${exclusive}`, () => {
      const resources = podResourcesOf(pod);
      assert.deepEqual(
        [resources.obstacles.map((obstacle) => `${obstacle.container}: ${obstacle.why}`), resources.exclusive],
        [obstacles, exclusive],
      );
    });
  }
});
