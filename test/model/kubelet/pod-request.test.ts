import assert from 'node:assert/strict';
import {
  type ContainerRequest,
  isGuaranteed,
  podRequestOf,
  type RequestingPod,
  reducedRequest,
} from '../../../model/kubelet/pod-request.ts';
import { container, pod } from './fixture.ts';

const made = (kind: ContainerRequest['kind'], cpus: number, devices = 0, memory = 0): ContainerRequest => ({
  name: `${kind}${cpus}`,
  kind,
  cpus,
  devices: new Map(devices > 0 ? [['x/nic', devices]] : []),
  memory: new Map(memory > 0 ? [['memory', memory]] : []),
});
const requestOf = (...containers: readonly ContainerRequest[]) => ({ uid: 'a', guaranteed: true, containers });

describe('model/kubelet: requests of a pod', () => {
  it('are devices even of a pod that is not Guaranteed, and then no CPUs and no memory', () => {
    const [one] = podRequestOf(pod('a', [{ name: 'c', resources: { limits: { cpu: '2', 'x/nic': '1' } } }])).containers;
    assert.deepEqual([one?.cpus, [...(one?.devices ?? [])], one?.memory.size], [0, [['x/nic', 1]], 0]);
  });
});

describe('model/kubelet: a request that is stored', () => {
  it('has no containers without exclusive CPUs', () => {
    assert.deepEqual(reducedRequest(requestOf(made('app', 0, 1), made('init', 0))).containers, []);
    const mixed = requestOf(made('app', 0, 1), made('app', 2));
    assert.equal(reducedRequest(mixed), mixed);
  });
});

describe('model/kubelet: the QoS class', () => {
  const of = (...containers: { requests?: Record<string, string>; limits?: Record<string, string> }[]): RequestingPod =>
    pod(
      'a',
      containers.map((resources, i) => ({ name: `c${i}`, resources })),
    );
  const both = { cpu: '1', memory: '1Gi' };
  const cases: [what: string, pod: RequestingPod, guaranteed: boolean][] = [
    ['limits of CPU and memory', of({ limits: both }), true],
    ['no limit of CPU', of({ limits: { memory: '1Gi' } }), false],
    ['a smaller request', of({ limits: both, requests: { cpu: '500m' } }), false],
    ['an equal request', of({ limits: both, requests: { cpu: '1000m', memory: '1024Mi' } }), true],
    ['one init container without limits', pod('a', [container('c', 1)], [{ name: 'i' }]), false],
    ['another class in the status', { ...of({ limits: both }), status: { qosClass: 'Burstable' } }, false],
    ['limits of the pod', { spec: { containers: [{ name: 'c' }], resources: { limits: both } } }, true],
  ];
  for (const [what, one, guaranteed] of cases)
    it(`is ${guaranteed ? '' : 'not '}Guaranteed with ${what}`, () => assert.equal(isGuaranteed(one), guaranteed));
});
