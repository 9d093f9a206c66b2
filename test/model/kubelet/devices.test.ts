import assert from 'node:assert/strict';
import type { DevicePool } from '../../../model/kubelet/devices.ts';
import type { Kubelet } from '../../../model/kubelet/kubelet.ts';
import { podRequestOf } from '../../../model/kubelet/pod-request.ts';
import type { ContainerShape } from '../../../model/shapes.ts';
import { container, pod, predictable, simpleHost } from './fixture.ts';

const NIC = 'example.com/nic';

/** Healthy devices d0, d1 and so on, on these NUMA nodes. */
function poolOf(...nodes: readonly (readonly number[] | undefined)[]): DevicePool {
  return { devices: nodes.map((cells, index) => ({ id: `d${index}`, healthy: true, nodes: cells })) };
}

const nics = (name: string, count: number, restartPolicy?: string): ContainerShape => ({
  ...container(name, 2, { [NIC]: `${count}` }),
  ...(restartPolicy !== undefined && { restartPolicy }),
});

function admit(
  kubelet: Kubelet,
  state: ReturnType<Kubelet['initialState']>,
  containers: ContainerShape[],
  { uid = 'a', init = [] }: { readonly uid?: string; readonly init?: ContainerShape[] } = {},
) {
  const admission = kubelet.admit(state, podRequestOf(pod(uid, containers, init)));
  const text = admission.admitted
    ? admission.containers.map(({ name, devices }) => `${name}=${[...(devices.get(NIC) ?? [])].join('+')}`).join(' ')
    : admission.message.replace(/^Allocate failed due to (.*), which is unexpected$/, '$1');
  return { text, state: admission.state, hint: admission.admitted ? admission.hint : admission.reason };
}

describe('hints of devices', () => {
  const restricted = { topologyManager: { policy: 'restricted' } };
  const hintOf = (pool: DevicePool, config = {}, cpus = 2, host = simpleHost(2, 8)) => {
    const kubelet = predictable(host, { ...restricted, ...config });
    return admit(kubelet, kubelet.initialState(new Map([[NIC, pool]])), [container('c', cpus, { [NIC]: '1' })]).hint;
  };

  it('are narrow since 1.36, so six CPUs no longer go with a NIC on one node', () => {
    // The CPUs need both nodes. The NIC's hint {0} limits this to node 0 since 1.36; before, {0,1} was offered.
    const policy = { topologyManager: { policy: 'best-effort' } };
    assert.deepEqual(hintOf(poolOf([0]), policy, 6, simpleHost(2, 4)), [0]);
    assert.deepEqual(hintOf(poolOf([0]), { ...policy, version: 'v1.35.0' }, 6, simpleHost(2, 4)), [0, 1]);
  });

  it('name one node if another has more of them, and none of devices without topology', () => {
    assert.deepEqual(hintOf(poolOf([0], [1], [1])), [0]);
    assert.deepEqual(hintOf(poolOf(undefined)), [0]);
    assert.deepEqual(hintOf(poolOf([1])), [1]);
  });

  it('change as devices are used and freed with the pod', () => {
    const kubelet = predictable(simpleHost(2, 8), restricted);
    const first = admit(kubelet, kubelet.initialState(new Map([[NIC, poolOf([1])]])), [nics('c', 1)]);
    assert.equal(first.text, 'c=d0');
    assert.equal(admit(kubelet, first.state, [nics('c', 1)], { uid: 'b' }).hint, 'TopologyAffinityError');
    assert.equal(admit(kubelet, kubelet.remove(first.state, 'a'), [nics('c', 1)], { uid: 'b' }).text, 'c=d0');
  });
});

describe('devices of a pod', () => {
  const kubelet = predictable(simpleHost(1, 16), { topologyManager: { policy: 'none' } });
  const pools = (...healthy: readonly boolean[]) => {
    const devices = healthy.map((isHealthy, i) => ({ id: `d${i}`, healthy: isHealthy, nodes: [0] }));
    return new Map<string, DevicePool>([[NIC, { devices }]]);
  };
  const unavailable = (requested: number, available: number) =>
    `requested number of devices unavailable for ${NIC}. Requested: ${requested}, Available: ${available}`;

  it('are refused with the numbers if too few are free', () => {
    const start = kubelet.initialState(pools(true, true, false));
    assert.equal(admit(kubelet, start, [nics('c', 2)]).text, 'c=d0+d1');
    assert.equal(admit(kubelet, start, [nics('c', 3)]).text, unavailable(3, 2));
    const { state } = admit(kubelet, start, [nics('c', 1)]);
    assert.equal(admit(kubelet, state, [nics('c', 2)], { uid: 'b' }).text, unavailable(2, 1));
  });

  it('stay the same when the kubelet has restarted, and are refused after a change', () => {
    const { state } = admit(kubelet, kubelet.initialState(pools(true, true)), [nics('c', 1)]);
    const again = (count: number, ...healthy: boolean[]) =>
      admit(kubelet, { ...state, pools: pools(...healthy) }, [nics('c', count)]).text;
    assert.equal(again(1, true, true), 'c=d0');
    assert.equal(again(2, true, true), `pod "a" container "c" changed request for resource "${NIC}" from 1 to 2`);
    assert.match(again(1, false, true), /^previously allocated devices are no longer healthy; cannot allocate/);
    assert.equal(again(1, true, false), 'c=d0');
  });

  for (const [what, apps, init, expected] of [
    ['from an init container to later ones', [nics('c', 1), nics('d', 1)], [nics('i', 2)], 'i=d0+d1 c=d0 d=d1'],
    ['together with others', [nics('c', 3)], [nics('i', 1)], 'i=d0 c=d0+d1+d2'],
    ['to a sidecar', [nics('c', 1)], [nics('i', 1), nics('s', 1, 'Always')], 'i=d0 s=d0 c=d1'],
  ] as const) {
    it(`pass ${what}`, () => {
      const start = kubelet.initialState(pools(true, true, true));
      assert.equal(admit(kubelet, start, [...apps], { init: [...init] }).text, expected);
    });
  }
});

/**
 * The effect of a preference whose device always names its NUMA node: the reason why it names it only if that does no
 * harm (ADR 0053). If a later kubelet behaves differently, these tests fail, and the decision can change.
 */
describe('a preference as a device', () => {
  const near: DevicePool = { devices: [{ id: '0', healthy: true, nodes: [0] }], endless: true };
  /** Two NUMA nodes of 8 CPUs, 0-1 reserved. The first one has two CPUs left. */
  const second = (policy: string, version: string, devices: Record<string, string>) => {
    const kubelet = predictable(simpleHost(2, 8), { topologyManager: { policy }, version });
    const empty = kubelet.initialState(new Map([[NIC, near]]));
    const filled = kubelet.admit(empty, podRequestOf(pod('first', [container('c', 4)])));
    const admission = kubelet.admit(filled.state, podRequestOf(pod('second', [container('c', 4, devices)])));
    return admission.admitted ? `${admission.containers[0]?.cpus}` : admission.reason;
  };

  for (const [policy, version, expected] of [
    ['restricted', 'v1.35.0', 'TopologyAffinityError'],
    ['single-numa-node', 'v1.35.0', 'TopologyAffinityError'],
    ['best-effort', 'v1.35.0', '6-9'],
  ] as const) {
    it(`costs a pod its NUMA node with ${policy}, ${version}: ${expected}`, () => {
      assert.equal(second(policy, version, {}), '8-11');
      assert.equal(second(policy, version, { [NIC]: '1' }), expected);
    });
  }
});
