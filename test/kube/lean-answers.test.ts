import assert from 'node:assert/strict';
import fc from 'fast-check';
import {
  AllocatableResourcesResponse,
  ContainerDevices,
  ContainerResources,
  ListPodResourcesResponse,
  PodResources,
} from '../../kube/kubelet-api/gen/pod-resources.ts';
import { decodeLeanAllocatable, decodeLeanList } from '../../kube/kubelet-api/lean-answers.ts';

const wanted = (name: string) => name.startsWith('ours/');

const device = fc
  .record({
    resourceName: fc.constantFrom('ours/a', 'ours/b', 'theirs/c', ''),
    deviceIds: fc.array(fc.string(), { maxLength: 3 }),
    topology: fc.option(fc.record({ nodes: fc.array(fc.record({ ID: fc.nat(7) })) }), { nil: undefined }),
  })
  .map(ContainerDevices.fromPartial);
const cpuIds = fc.array(fc.nat(4095), { maxLength: 5 });
const memory = fc.array(fc.record({ memoryType: fc.string(), size: fc.nat() }), { maxLength: 2 });
const container = fc
  .record({
    name: fc.string(),
    devices: fc.array(device, { maxLength: 4 }),
    cpuIds,
    memory,
    dynamicResources: fc.array(fc.record({ claimName: fc.string() }), { maxLength: 2 }),
  })
  .map(ContainerResources.fromPartial);
const pod = fc
  .record({ name: fc.string(), namespace: fc.string(), containers: fc.array(container, { maxLength: 3 }) })
  .map(PodResources.fromPartial);

describe('answers of PodResources, partly decoded', () => {
  it('a List equals the complete decoding without unused fields', () => {
    fc.assert(
      fc.property(fc.array(pod, { maxLength: 4 }), (podResources) => {
        const bytes = ListPodResourcesResponse.encode({ podResources }).finish();
        const expected = ListPodResourcesResponse.decode(bytes);
        for (const one of expected.podResources.flatMap(({ containers }) => containers)) {
          one.devices = one.devices.filter(({ resourceName }) => wanted(resourceName));
          one.memory = [];
          one.dynamicResources = [];
        }
        assert.deepEqual(decodeLeanList(bytes, wanted), expected);
      }),
    );
  });

  it('allocatable resources equal the complete decoding', () => {
    fc.assert(
      fc.property(fc.array(device), cpuIds, memory, (devices, ids, cells) => {
        const message = AllocatableResourcesResponse.fromPartial({ devices, cpuIds: ids, memory: cells });
        const bytes = AllocatableResourcesResponse.encode(message).finish();
        const lean = decodeLeanAllocatable(bytes, wanted);
        const kept = AllocatableResourcesResponse.decode(bytes).devices.filter((one) => wanted(one.resourceName));
        assert.deepEqual([lean.cpuIds, lean.devices, lean.memory], [ids, kept, []]);
      }),
    );
  });

  it('unpacked ids of other encoders are read', () => {
    const bytes = Uint8Array.from([0x10, 0x03, 0x10, 0xac, 0x02]);
    assert.deepEqual(decodeLeanAllocatable(bytes, wanted).cpuIds, [3, 300]);
    assert.deepEqual(AllocatableResourcesResponse.decode(bytes).cpuIds, [3, 300]);
  });

  it('a truncated answer is an error, not fewer pods', () => {
    const containers = [ContainerResources.fromPartial({ name: 'compute', cpuIds: [2, 3] })];
    const pods = [PodResources.fromPartial({ name: 'vm', namespace: 'ns', containers })];
    const bytes = ListPodResourcesResponse.encode({ podResources: pods }).finish();
    for (let length = 1; length < bytes.length; length++) {
      assert.throws(() => decodeLeanList(bytes.subarray(0, length), wanted), `${length} bytes`);
    }
  });
});

describe('fields of newer kubelets', () => {
  /** A field with this number whose bytes would be read as a pod, a container or devices if the number were ignored. */
  const unknownField = (message: Uint8Array, number: number, content: Uint8Array) =>
    Buffer.concat([message, Buffer.from([(number << 3) | 2, content.length]), content]);
  const OURS = ContainerDevices.fromPartial({ resourceName: 'ours/a', deviceIds: ['1'] });

  it('are skipped in a List, in a pod and in a container', () => {
    const content = ContainerDevices.encode(OURS).finish();
    const container = unknownField(
      ContainerResources.encode({ ...ContainerResources.create(), name: 'c' }).finish(),
      9,
      content,
    );
    const pod = unknownField(
      Buffer.concat([
        PodResources.encode({ ...PodResources.create(), name: 'p', namespace: 'n' }).finish(),
        Buffer.from([(3 << 3) | 2, container.length]),
        container,
      ]),
      9,
      content,
    );
    const list = unknownField(Buffer.concat([Buffer.from([(1 << 3) | 2, pod.length]), pod]), 9, content);
    const { podResources } = decodeLeanList(list, wanted);
    assert.deepEqual(
      podResources.map(({ name, namespace, containers }) => [name, namespace, containers.map((one) => one.name)]),
      [['p', 'n', ['c']]],
    );
    assert.deepEqual(podResources[0]?.containers[0]?.devices, []);
  });

  it('are skipped in allocatable resources, and the last name of a device counts', () => {
    const content = ContainerDevices.encode(OURS).finish();
    const answer = unknownField(
      AllocatableResourcesResponse.encode(AllocatableResourcesResponse.create()).finish(),
      9,
      content,
    );
    assert.deepEqual(decodeLeanAllocatable(answer, wanted), AllocatableResourcesResponse.create());
    const theirs = unknownField(content, 1, Buffer.from('theirs/c'));
    const message = Buffer.concat([Buffer.from([(1 << 3) | 2, theirs.length]), theirs]);
    assert.deepEqual(decodeLeanAllocatable(message, wanted).devices, []);
  });
});
