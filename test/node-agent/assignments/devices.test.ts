import assert from 'node:assert/strict';
import { PlumblineError } from '../../../model/errors.ts';
import {
  countDevices,
  devicesOfPods,
  type ListedDevices,
  type PodWithDevices,
} from '../../../node-agent/assignments/devices.ts';

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
  const cases: [string, ListedDevices[], ListedDevices[], unknown][] = [
    [
      'are counted by NUMA node',
      [...list(VF, eight.slice(0, 6), [1]), ...list(VF, eight.slice(6), [0])],
      [inUse(VF, 'vf0', 'vf1'), inUse(VF, 'vf7')],
      [
        {
          resource: VF,
          groups: [
            { cells: '0', total: 2, free: 1 },
            { cells: '1', total: 6, free: 4 },
          ],
        },
      ],
    ],
    [
      'on two NUMA nodes at once are one group, whatever the order',
      [...list(VF, ['a'], [0, 1]), ...list(VF, ['b'], [1, 0]), ...list(VF, ['c'], [0])],
      [inUse(VF, 'b')],
      [
        {
          resource: VF,
          groups: [
            { cells: '0', total: 1, free: 1 },
            { cells: '0-1', total: 2, free: 1 },
          ],
        },
      ],
    ],
    [
      'without a topology name no NUMA node; those with an impossible one have none',
      [...list('a/gpu', ['x', 'y']), ...list('b/gpu', ['z'], [-1])],
      [inUse('a/gpu', 'x')],
      [
        { resource: 'a/gpu', groups: [{ total: 2, free: 1 }] },
        { resource: 'b/gpu', groups: [{ cells: '', total: 1, free: 1 }] },
      ],
    ],
    [
      'that are in use and no longer healthy are not counted',
      list(VF, ['a'], [0]),
      [inUse(VF, 'b', 'c')],
      [{ resource: VF, groups: [{ cells: '0', total: 1, free: 1 }] }],
    ],
    [
      'are not those of Plumbline’s networks and of KubeVirt',
      [
        ...list('physnet.plumbline.dev/a', ['1'], [0]),
        ...list('plumbline.dev/tunnel', ['1'], [0]),
        ...list('plumbline.dev/placed', ['1']),
        ...list('devices.kubevirt.io/kvm', ['1']),
      ],
      [],
      [],
    ],
  ];
  for (const [what, allocatable, used, expected] of cases) {
    it(what, () => assert.deepEqual(countDevices(allocatable, used), expected));
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
const podWithDevices = (containers: Readonly<Record<string, readonly string[]>>): PodWithDevices => ({
  containers: Object.entries(containers).map(([name, ids]) => ({
    name,
    devices: ids.map((id) => ({ resourceName: VF, deviceIds: [id] })),
  })),
});

describe('devices that the kubelet keeps for pods', () => {
  const cases: [string, string, PodWithDevices[], string[], string[]][] = [
    ['are none without pods', JSON.stringify({ Data: { PodDeviceEntries: null } }), [], [], []],
    ['are those that the kubelet lists', keptFile(['u', 'main', 'a']), [podWithDevices({ main: ['a'] })], [], ['a']],
    [
      'are also those of an init container that ended, of a pod with a listed device',
      keptFile(['u', 'init', 'a', 'b'], ['u', 'main', 'a'], ['v', 'init', 'c']),
      [podWithDevices({ main: ['a'] })],
      [],
      ['a', 'b'],
    ],
    [
      'are also those of an init container that ended, of a pod with CPUs',
      keptFile(['u', 'init', 'a'], ['v', 'init', 'b']),
      [podWithDevices({ main: [] })],
      ['v'],
      ['b'],
    ],
    ['are not those of a pod that is gone', keptFile(['u', 'main', 'a']), [podWithDevices({ main: [] })], [], []],
  ];
  for (const [what, text, pods, podsWithCpus, expected] of cases) {
    it(what, () => {
      const devices = devicesOfPods(text, pods, new Set(podsWithCpus));
      assert.deepEqual([...new Set(devices.flatMap(({ deviceIds }) => deviceIds))].sort(), expected);
    });
  }

  const whole = keptFile(['u', 'main', 'a']);
  for (const [what, text] of [
    ['torn', whole.slice(0, -20)],
    ['of another version', JSON.stringify({ Data: { PodDeviceEntries: {} } })],
  ] as const) {
    it(`are not known from a file that is ${what}`, () => {
      assert.throws(() => devicesOfPods(text, [], new Set()), PlumblineError);
    });
  }
});
