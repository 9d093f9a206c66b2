import assert from 'node:assert/strict';
import type { PodResources } from '../../../kube/kubelet-api/gen/pod-resources.ts';
import { PlumblineError } from '../../../model/errors.ts';
import { countDevices, devicesOfPods, type ListedDevices } from '../../../node-agent/assignments/devices.ts';
import { podResourcesOf } from '../../support/pod-resources.ts';

const VF = 'openshift.io/sriov_vf';
/** One entry for each device and NUMA node, as the kubelet lists them. */
const list = (resourceName: string, ids: readonly string[], nodes?: readonly number[]): ListedDevices[] =>
  ids.flatMap((id): ListedDevices[] =>
    nodes === undefined
      ? [{ resourceName, deviceIds: [id], topology: undefined }]
      : nodes.map((ID) => ({ resourceName, deviceIds: [id], topology: { nodes: [{ ID }] } })),
  );
const inUse = (resourceName: string, ...deviceIds: string[]): ListedDevices => ({ resourceName, deviceIds });

describe('devices in the report', () => {
  const eight = Array.from({ length: 8 }, (_, i) => `vf${i}`);
  const wide = [...list(VF, ['a'], [0, 1]), ...list(VF, ['b'], [1, 0]), ...list(VF, ['c'], [0])];
  const own = ['physnet.plumbline.dev/a', 'plumbline.dev/tunnel', 'plumbline.dev/placed', 'devices.kubevirt.io/kvm'];
  // Each group: its NUMA nodes, and how many of its devices are free.
  const cases: [string, ListedDevices[], ListedDevices[], string[]][] = [
    [
      'are counted by NUMA node',
      [...list(VF, eight.slice(0, 6), [1]), ...list(VF, eight.slice(6), [0])],
      [inUse(VF, 'vf0', 'vf1'), inUse(VF, 'vf7')],
      [`${VF} 0: 1/2, 1: 4/6`],
    ],
    ['on two NUMA nodes at once are one group, whatever the order', wide, [inUse(VF, 'b')], [`${VF} 0: 1/1, 0-1: 1/2`]],
    [
      'without a topology name no NUMA node; those with an impossible one have none',
      [...list('a/gpu', ['x', 'y']), ...list('b/gpu', ['z'], [-1])],
      [inUse('a/gpu', 'x')],
      ['a/gpu undefined: 1/2', 'b/gpu : 1/1'],
    ],
    ['that are in use and unhealthy are not counted', list(VF, ['a'], [0]), [inUse(VF, 'b', 'c')], [`${VF} 0: 1/1`]],
    ['are not those of Plumbline’s networks and of KubeVirt', own.flatMap((name) => list(name, ['1'], [0])), [], []],
  ];
  for (const [what, allocatable, used, expected] of cases) {
    it(what, () => {
      const texts = countDevices(allocatable, used).map(({ resource, groups }) => {
        return `${resource} ${groups.map(({ cells, total, free }) => `${cells}: ${free}/${total}`).join(', ')}`;
      });
      assert.deepEqual(texts, expected);
    });
  }
});

type Entry = readonly [podUID: string, container: string, ...ids: string[]];

const keptFile = (...entries: Entry[]) =>
  JSON.stringify({
    Data: {
      PodDeviceEntries: entries.map(([PodUID, ContainerName, ...ids]) => {
        return { PodUID, ContainerName, ResourceName: VF, DeviceIDs: { 0: ids, 1: ids }, AllocResp: 'CgA=' };
      }),
      RegisteredDevices: { [VF]: ['a', 'b'] },
    },
    Checksum: 1,
  });
const podWithDevices = (containers: Readonly<Record<string, readonly string[]>>) => {
  const devicesOf = (ids: readonly string[]) => ids.map((id) => ({ resourceName: VF, deviceIds: [id] }));
  const list = Object.entries(containers).map(([name, ids]) => ({ name, devices: devicesOf(ids) }));
  return podResourcesOf({ containers: list });
};

describe('devices that the kubelet keeps for pods', () => {
  const INITS = keptFile(['u', 'init', 'a'], ['v', 'init', 'b']);
  const IDLE = [podWithDevices({ main: [] })];
  const cases: [string, string, PodResources[], string[], string[]][] = [
    ['are none without pods', JSON.stringify({ Data: { PodDeviceEntries: null } }), [], [], []],
    ['are those that the kubelet lists', keptFile(['u', 'main', 'a']), [podWithDevices({ main: ['a'] })], [], ['a']],
    [
      'are also those of an init container that ended, of a pod with a listed device',
      keptFile(['u', 'init', 'a', 'b'], ['u', 'main', 'a'], ['v', 'init', 'c']),
      [podWithDevices({ main: ['a'] })],
      [],
      ['a', 'b'],
    ],
    ['are also those of an init container, of a pod with CPUs', INITS, IDLE, ['v'], ['b']],
    ['are not those of a pod that is gone', keptFile(['u', 'main', 'a']), IDLE, [], []],
  ];
  for (const [what, text, pods, podsWithCpus, expected] of cases) {
    it(what, () => {
      const devices = devicesOfPods(text, pods, new Set(podsWithCpus));
      assert.deepEqual([...new Set(devices.flatMap(({ deviceIds }) => deviceIds))].sort(), expected);
    });
  }

  const whole = keptFile(['u', 'main', 'a']);
  const OTHER = JSON.stringify({ Data: { PodDeviceEntries: {} } });
  for (const [what, text] of Object.entries({ torn: whole.slice(0, -20), 'of another version': OTHER })) {
    it(`are not known from a file that is ${what}`, () =>
      assert.throws(() => devicesOfPods(text, [], new Set()), PlumblineError));
  }
});
