import assert from 'node:assert/strict';
import {
  type ContainerRequest,
  lastingCpus,
  MAX_CONTAINERS,
  podCpus,
  podDevices,
  podMemory,
  reducedRequest,
} from '../../../model/kubelet/pod-request.ts';

const NIC = 'example.com/nic';
const of = (kind: ContainerRequest['kind'], cpus: number, nics = 0, memory = 0): ContainerRequest => ({
  name: kind,
  kind,
  cpus,
  devices: new Map(nics === 0 ? [] : [[NIC, nics]]),
  memory: new Map(memory === 0 ? [] : [['memory', memory]]),
});
const pod = (...containers: readonly ContainerRequest[]) => ({ uid: 'a', guaranteed: true, containers });

describe('model/kubelet: the stored request of a pod', () => {
  it('has no container if none has exclusive CPUs, and all of them if one has', () => {
    assert.deepEqual(reducedRequest(pod(of('app', 0), of('init', 0))), pod());
    const mixed = pod(of('app', 0), of('app', 2));
    assert.equal(reducedRequest(mixed), mixed);
  });

  it('is complete up to the limit', () => {
    const full = pod(...Array.from({ length: MAX_CONTAINERS }, () => of('app', 1)));
    assert.equal(reducedRequest(full), full);
  });

  it('combines the containers beyond the limit by kind: the sums, and of init containers the largest', () => {
    const first = Array.from({ length: MAX_CONTAINERS }, () => of('app', 1));
    const rest = [of('init', 2, 1, 8), of('init', 6, 0, 4), of('sidecar', 2, 1, 1), of('app', 4, 1), of('app', 2, 2)];
    const { containers } = reducedRequest(pod(...first, ...rest));
    assert.deepEqual(containers, [
      ...first,
      { ...of('init', 6, 1, 8), name: '2 more' },
      { ...of('sidecar', 2, 1, 1), name: '1 more' },
      { ...of('app', 6, 3), name: '2 more' },
    ]);
  });
});

describe('model/kubelet: the peak of a pod', () => {
  it('is that of its largest init container with the sidecars before it, or that of the containers that stay', () => {
    assert.equal(podCpus(pod(of('sidecar', 2), of('init', 6), of('sidecar', 3), of('app', 1))), 8);
    assert.equal(podCpus(pod(of('sidecar', 2), of('init', 3), of('sidecar', 3), of('app', 1))), 6);
    assert.equal(podCpus(pod()), 0);
  });

  it('counts devices by resource', () => {
    assert.deepEqual([...podDevices(pod(of('init', 0, 3), of('app', 0, 2)))], [[NIC, 3]]);
    assert.deepEqual([...podDevices(pod(of('init', 0, 1), of('app', 0, 1), of('app', 0, 1)))], [[NIC, 2]]);
  });

  it('counts memory that some container requests which stays', () => {
    assert.deepEqual([...podMemory(pod(of('init', 0, 0, 8), of('app', 0, 0, 2)))], [['memory', 8]]);
    assert.deepEqual([...podMemory(pod(of('init', 0, 0, 8), of('app', 0)))], []);
    assert.deepEqual([...podMemory(pod(of('sidecar', 0, 0, 8), of('app', 0)))], []);
  });

  it('has lasting CPUs without its init containers', () => {
    assert.equal(lastingCpus(pod(of('init', 9), of('sidecar', 2), of('app', 3))), 5);
  });
});
