import assert from 'node:assert/strict';
import { countDevices, type ListedDevices } from '../../../node-agent/assignments/devices.ts';

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
    ['are none without plugins', [], [], []],
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

  it('are counted: 1,024 in one resource, half of them in use', () => {
    const ids = Array.from({ length: 1024 }, (_, i) => `0000:${i}`);
    const allocatable = [...list(VF, ids.slice(0, 512), [0]), ...list(VF, ids.slice(512), [0, 1])];
    assert.deepEqual(countDevices(allocatable, [inUse(VF, ...ids.slice(256, 768))])[0]?.groups, [
      { cells: '0', total: 512, free: 256 },
      { cells: '0-1', total: 512, free: 256 },
    ]);
  });
});
