import assert from 'node:assert/strict';
import type { KubeNode, KubePod } from '../sandbox/objects.ts';
import { podRequests, shortage } from '../sandbox/pod-requests.ts';
import { podOf } from './sandbox/support.ts';

const cpu = (amount: string, extra = {}) => ({ name: 'c', resources: { requests: { cpu: amount } }, ...extra });
const pod = (spec: object) => podOf('p', {}, spec as never) as KubePod;

describe('the requests of a pod', () => {
  it('are the larger of running and starting, with sidecars in both, and the overhead', () => {
    const requesting = pod({
      containers: [cpu('1'), cpu('2')],
      initContainers: [cpu('1', { restartPolicy: 'Always' }), cpu('4'), cpu('500m', { restartPolicy: 'Always' })],
      overhead: { cpu: '250m' },
    });
    assert.equal(podRequests(requesting).get('cpu'), 5_250_000_000n);
  });

  it('are those at pod level where it has any', () => {
    const requesting = pod({ containers: [cpu('1')], resources: { requests: { cpu: '3' } } });
    assert.equal(podRequests(requesting).get('cpu'), 3_000_000_000n);
  });
});

describe('a shortage on a node', () => {
  const node = { status: { allocatable: { cpu: '8', memory: '1Gi', 'x.dev/y': '1' } } } as unknown as KubeNode;
  const asking = (requests: object) => pod({ containers: [{ name: 'c', resources: { requests } }] });
  const one = asking({ 'x.dev/y': '1' });
  const allocated = new Map([['c', new Map([['x.dev/y', 'id']])]]);
  const words = "Node didn't have enough resource: cpu, requested: 5000, used: 4000, capacity: 8000";

  for (const [what, requesting, others, devices, reason, message] of [
    ['none', asking({ cpu: '4' }), [asking({ cpu: '4' })], undefined, undefined],
    ['CPUs that another pod has', asking({ cpu: '5' }), [asking({ cpu: '4' })], undefined, 'OutOfcpu', words],
    ['a device', one, [one], undefined, 'OutOfx.dev/y'],
    ['no device that the device manager has allocated', one, [one], allocated, undefined],
    ['no resource that the Node does not count', asking({ 'z.dev/z': '1' }), [], undefined, undefined],
  ] as const) {
    it(`is noticed, in the words of the kubelet: ${what}`, () => {
      const noticed = shortage(requesting, others, node, devices);
      assert.equal(noticed?.reason, reason);
      if (message !== undefined) assert.equal(noticed?.message, message);
    });
  }
});
