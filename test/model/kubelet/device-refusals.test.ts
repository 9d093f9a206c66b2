import assert from 'node:assert/strict';
import type { DevicePool } from '../../../model/kubelet/devices.ts';
import { podRequestOf } from '../../../model/kubelet/pod-request.ts';
import type { ContainerShape } from '../../../model/shapes.ts';
import { container, pod, predictable, simpleHost } from './fixture.ts';

const NIC = 'x/nic';
const kubelet = predictable(simpleHost(1, 16), { topologyManager: { policy: 'none' } });
const pools = (...healthy: readonly boolean[]) =>
  new Map<string, DevicePool>([[NIC, { devices: healthy.map((is, i) => ({ id: `d${i}`, healthy: is, nodes: [0] })) }]]);
const nics = (name: string, count: number, restartPolicy?: string): ContainerShape => ({
  ...container(name, 2, { [NIC]: `${count}` }),
  ...(restartPolicy !== undefined && { restartPolicy }),
});

function admit(
  state: ReturnType<typeof kubelet.initialState>,
  uid: string,
  apps: ContainerShape[],
  init: ContainerShape[] = [],
) {
  const admission = kubelet.admit(state, podRequestOf(pod(uid, apps, init)));
  const text = admission.admitted
    ? admission.containers.map(({ name, devices }) => `${name}=${[...(devices.get(NIC) ?? [])].join('+')}`).join(' ')
    : admission.message.replace(/^Allocate failed due to (.*), which is unexpected$/, '$1');
  return { text, state: admission.state };
}

describe('model/kubelet: devices of a pod', () => {
  it('are refused with the numbers if too few are free', () => {
    const start = kubelet.initialState(pools(true, true, false));
    assert.equal(admit(start, 'a', [nics('c', 2)]).text, 'c=d0+d1');
    const message = (requested: number, available: number) =>
      `requested number of devices unavailable for x/nic. Requested: ${requested}, Available: ${available}`;
    assert.equal(admit(start, 'a', [nics('c', 3)]).text, message(3, 2));
    assert.equal(admit(admit(start, 'a', [nics('c', 1)]).state, 'b', [nics('c', 2)]).text, message(2, 1));
  });

  it('are refused if none is healthy', () => {
    assert.equal(
      admit(kubelet.initialState(pools(false)), 'a', [nics('c', 1)]).text,
      'no healthy devices present; cannot allocate unhealthy devices x/nic',
    );
  });

  it('stay the same when the kubelet has restarted, and are refused after a change', () => {
    const { state } = admit(kubelet.initialState(pools(true, true)), 'a', [nics('c', 1)]);
    assert.equal(admit(state, 'a', [nics('c', 1)]).text, 'c=d0');
    assert.equal(
      admit(state, 'a', [nics('c', 2)]).text,
      'pod "a" container "c" changed request for resource "x/nic" from 1 to 2',
    );
    assert.equal(
      admit({ ...state, pools: pools(false, true) }, 'a', [nics('c', 1)]).text,
      'previously allocated devices are no longer healthy; cannot allocate unhealthy devices x/nic',
    );
    assert.equal(admit({ ...state, pools: pools(true, false) }, 'a', [nics('c', 1)]).text, 'c=d0');
  });

  it('pass from init containers to later ones, but not from sidecars', () => {
    const start = kubelet.initialState(pools(true, true, true));
    assert.equal(admit(start, 'a', [nics('c', 1), nics('d', 1)], [nics('i', 2)]).text, 'i=d0+d1 c=d0 d=d1');
    assert.equal(admit(start, 'a', [nics('c', 3)], [nics('i', 1)]).text, 'i=d0 c=d0+d1+d2');
    assert.equal(admit(start, 'a', [nics('c', 1)], [nics('s', 1, 'Always')]).text, 's=d0 c=d1');
    assert.equal(admit(start, 'a', [nics('c', 1)], [nics('i', 1), nics('s', 1, 'Always')]).text, 'i=d0 s=d0 c=d1');
  });
});
