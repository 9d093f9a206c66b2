import assert from 'node:assert/strict';
import type { DevicePool, DevicePools } from '../../../model/kubelet/devices.ts';
import type { Kubelet } from '../../../model/kubelet/kubelet.ts';
import { podRequestOf } from '../../../model/kubelet/pod-request.ts';
import { container, pod, predictable, simpleHost } from './fixture.ts';

const NIC = 'example.com/nic';

function poolOf(...nodes: readonly (readonly number[] | undefined)[]): DevicePool {
  return { devices: nodes.map((one, index) => ({ id: `nic${index}`, healthy: true, nodes: one })) };
}

function admit(
  kubelet: Kubelet,
  pools: DevicePools,
  uid: string,
  cpus: number,
  nics: number,
  state = kubelet.initialState(pools),
) {
  return kubelet.admit(state, podRequestOf(pod(uid, [container('c', cpus, { [NIC]: `${nics}` })])));
}

describe('model/kubelet: device hints', () => {
  const restricted = { topologyManager: { policy: 'restricted' } };

  it('are narrow since 1.36, so six CPUs no longer go with a NIC on one node', () => {
    const pools = new Map([[NIC, poolOf([0])]]);
    const host = simpleHost(2, 4);
    const policy = { topologyManager: { policy: 'best-effort' } };
    const now = admit(predictable(host, policy), pools, 'a', 6, 1);
    const before = admit(predictable(host, { ...policy, version: 'v1.35.0' }), pools, 'a', 6, 1);
    assert.ok(now.admitted && before.admitted);
    // The CPUs need both nodes. The NIC's hint {0} limits this to node 0 since 1.36; before, {0,1} was offered.
    assert.deepEqual(now.hint, [0]);
    assert.deepEqual(before.hint, [0, 1]);
  });

  it('change as devices are used and freed with the pod', () => {
    const kubelet = predictable(simpleHost(2, 8), restricted);
    const pools = new Map([[NIC, poolOf([1])]]);
    const first = admit(kubelet, pools, 'a', 2, 1);
    assert.ok(first.admitted);
    assert.deepEqual(first.containers[0]?.hint, [1]);
    const second = admit(kubelet, pools, 'b', 2, 1, first.state);
    assert.ok(!second.admitted);
    assert.equal(second.reason, 'TopologyAffinityError');
    assert.ok(admit(kubelet, pools, 'b', 2, 1, kubelet.remove(first.state, 'a')).admitted);
  });

  it('are not used without a topology policy; a missing device is an unexpected error', () => {
    const kubelet = predictable(simpleHost(2, 8));
    const answer = admit(kubelet, new Map([[NIC, poolOf([1])]]), 'a', 2, 2);
    assert.ok(!answer.admitted);
    assert.equal(
      answer.message,
      `Allocate failed due to requested number of devices unavailable for ${NIC}. Requested: 2, Available: 1, which is unexpected`,
    );
  });

  it('name one node if another has more of them', () => {
    const kubelet = predictable(simpleHost(2, 8), restricted);
    const answer = admit(kubelet, new Map([[NIC, poolOf([0], [1], [1])]]), 'a', 2, 1);
    assert.ok(answer.admitted);
    assert.deepEqual(answer.hint, [0]);
  });

  it('do not come from devices without topology', () => {
    const kubelet = predictable(simpleHost(2, 8), restricted);
    const answer = admit(kubelet, new Map([[NIC, poolOf(undefined)]]), 'a', 2, 1);
    assert.ok(answer.admitted);
    assert.deepEqual(answer.hint, [0]);
  });

  it('need a healthy device; without one, the refusal has the kubelet’s message', () => {
    const kubelet = predictable(simpleHost(2, 8));
    const pools = new Map([[NIC, { devices: [{ id: 'x', healthy: false, nodes: [0] }] }]]);
    const answer = admit(kubelet, pools, 'a', 2, 1);
    assert.ok(!answer.admitted);
    assert.match(answer.message, /no healthy devices present; cannot allocate unhealthy devices example\.com\/nic/);
  });

  it('count the device that an init container passes on', () => {
    const kubelet = predictable(simpleHost(1, 16), restricted);
    const containers = [container('app', 2, { [NIC]: '1' })];
    const init = [container('init', 2, { [NIC]: '1' })];
    const state = kubelet.initialState(new Map([[NIC, poolOf([0])]]));
    const answer = kubelet.admit(state, podRequestOf(pod('a', containers, init)));
    assert.ok(answer.admitted);
    assert.deepEqual([...(answer.containers[1]?.devices.get(NIC) ?? [])], ['nic0']);
  });
});
