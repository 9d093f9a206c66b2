import assert from 'node:assert/strict';
import type { DevicePool } from '../../../model/kubelet/devices.ts';
import { podRequestOf } from '../../../model/kubelet/pod-request.ts';
import { container, pod, predictable, simpleHost } from './fixture.ts';

const HINT = 'example.com/near-east';
/** Unlimited, and near NUMA node 0. */
const POOL: DevicePool = { devices: [{ id: '0', healthy: true, nodes: [0] }], endless: true };

/**
 * The effect of a preference whose device always names its NUMA node: the reason why it names it only if that does no
 * harm (ADR 0053). If a later kubelet behaves differently, these tests fail, and the decision can change.
 */
describe('model/kubelet: a preference as a device', () => {
  /** Two NUMA nodes of 8 CPUs, 0-1 reserved. The first one has two CPUs left. */
  const admit = (policy: string, version: string, devices: Record<string, string>) => {
    const kubelet = predictable(simpleHost(2, 8), { topologyManager: { policy }, version });
    const empty = kubelet.initialState(new Map([[HINT, POOL]]));
    const filled = kubelet.admit(empty, podRequestOf(pod('first', [container('c', 4)])));
    assert.ok(filled.admitted);
    return kubelet.admit(filled.state, podRequestOf(pod('second', [container('c', 4, devices)])));
  };

  for (const version of ['v1.35.0', 'v1.36.2']) {
    for (const policy of ['restricted', 'single-numa-node']) {
      it(`${policy}, ${version}: refuses a pod that it would accept without the device`, () => {
        assert.ok(admit(policy, version, {}).admitted);
        const asked = admit(policy, version, { [HINT]: '1' });
        assert.ok(!asked.admitted);
        assert.equal(asked.reason, 'TopologyAffinityError');
      });
    }

    it(`best-effort, ${version}: splits a pod that would be on one NUMA node without the device`, () => {
      const cells = (answer: ReturnType<typeof admit>) => {
        assert.ok(answer.admitted);
        const [first] = answer.containers;
        return new Set([...(first?.cpus ?? [])].map((cpu) => (cpu < 8 ? 0 : 1))).size;
      };
      assert.equal(cells(admit('best-effort', version, {})), 1);
      assert.equal(cells(admit('best-effort', version, { [HINT]: '1' })), 2);
    });
  }
});
