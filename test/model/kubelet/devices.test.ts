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
});

describe('devices of a pod', () => {
  const kubelet = predictable(simpleHost(1, 16), { topologyManager: { policy: 'none' } });
  const pools = (...healthy: readonly boolean[]) => {
    const devices = healthy.map((isHealthy, i) => ({ id: `d${i}`, healthy: isHealthy, nodes: [0] }));
    return new Map<string, DevicePool>([[NIC, { devices }]]);
  };

  it('stay the same when the kubelet has restarted, and are refused after a change', () => {
    const { state } = admit(kubelet, kubelet.initialState(pools(true, true)), [nics('c', 1)]);
    const again = (count: number, ...healthy: boolean[]) =>
      admit(kubelet, { ...state, pools: pools(...healthy) }, [nics('c', count)]).text;
    assert.equal(again(1, true, true), 'c=d0');
    assert.equal(again(2, true, true), `pod "a" container "c" changed request for resource "${NIC}" from 1 to 2`);
    assert.match(again(1, false, true), /^previously allocated devices are no longer healthy; cannot allocate/);
    assert.equal(again(1, true, false), 'c=d0');
  });
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
