import assert from 'node:assert/strict';
import {
  type ContainerRequest,
  isGuaranteed,
  podRequestOf,
  type RequestingPod,
  reducedRequest,
} from '../../../model/kubelet/pod-request.ts';
import { container, pod } from './fixture.ts';

const GI = 2 ** 30;
const sidecar = (name: string, cpus: number) => ({ ...container(name, cpus), restartPolicy: 'Always' });
const made = (kind: ContainerRequest['kind'], cpus: number, devices = 0, memory = 0): ContainerRequest => ({
  name: `${kind}${cpus}`,
  kind,
  cpus,
  devices: new Map(devices > 0 ? [['x/nic', devices]] : []),
  memory: new Map(memory > 0 ? [['memory', memory]] : []),
});
const requestOf = (...containers: readonly ContainerRequest[]) => ({ uid: 'a', guaranteed: true, containers });

describe('model/kubelet: requests of a pod', () => {
  it('are those of its containers, in the order of admission', () => {
    const request = podRequestOf(
      pod(
        'a',
        [container('app', 2, { 'x/nic': '2', 'hugepages-2Mi': '4Mi', 'ephemeral-storage': '1Gi' })],
        [sidecar('side', 1), container('init', 3)],
      ),
    );
    assert.deepEqual([request.uid, request.guaranteed], ['a', true]);
    assert.deepEqual(
      request.containers.map(({ name, kind, cpus, devices, memory }) => [name, kind, cpus, [...devices], [...memory]]),
      [
        ['side', 'sidecar', 1, [], [['memory', GI]]],
        ['init', 'init', 3, [], [['memory', GI]]],
        [
          'app',
          'app',
          2,
          [['x/nic', 2]],
          [
            ['memory', GI],
            ['hugepages-2Mi', 4 * 2 ** 20],
          ],
        ],
      ],
    );
  });

  it('are CPUs only if the amount is whole, from requests or else limits', () => {
    const cpusOf = (resources: object) => {
      const memory = { memory: '1Gi' };
      const both = Object.fromEntries(Object.entries(resources).map(([list, cpu]) => [list, { ...memory, cpu }]));
      return podRequestOf(pod('a', [{ name: 'c', resources: both }])).containers[0]?.cpus;
    };
    assert.deepEqual([cpusOf({ limits: '2' }), cpusOf({ limits: '2000m' }), cpusOf({ limits: '2500m' })], [2, 2, 0]);
    assert.deepEqual(
      [cpusOf({ requests: '2', limits: '2' }), cpusOf({ requests: '1', limits: '2' }), cpusOf({ requests: '2' })],
      [2, 0, 0],
    );
  });

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
