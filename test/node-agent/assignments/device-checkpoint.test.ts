import assert from 'node:assert/strict';
import { PlumblineError } from '../../../model/errors.ts';
import { devicesOfPods, type PodWithDevices } from '../../../node-agent/assignments/devices.ts';

const VF = 'openshift.io/sriov_vf';
type Entry = readonly [podUID: string, container: string, ...ids: string[]];

const file = (...entries: Entry[]) =>
  JSON.stringify({
    Data: {
      PodDeviceEntries: entries.map(([PodUID, ContainerName, ...ids]) => {
        return { PodUID, ContainerName, ResourceName: VF, DeviceIDs: { 0: ids, 1: ids }, AllocResp: 'CgA=' };
      }),
      RegisteredDevices: { [VF]: ['a', 'b'] },
    },
    Checksum: 1,
  });
const pod = (containers: Readonly<Record<string, readonly string[]>>): PodWithDevices => ({
  containers: Object.entries(containers).map(([name, ids]) => ({
    name,
    devices: ids.map((id) => ({ resourceName: VF, deviceIds: [id] })),
  })),
});

describe('devices that the kubelet keeps for pods', () => {
  const cases: [string, string, PodWithDevices[], string[], string[]][] = [
    ['are none without pods', JSON.stringify({ Data: { PodDeviceEntries: null } }), [], [], []],
    ['are those that the kubelet lists', file(['u', 'main', 'a']), [pod({ main: ['a'] })], [], ['a']],
    [
      'are also those of an init container that ended, of a pod with a listed device',
      file(['u', 'init', 'a', 'b'], ['u', 'main', 'a'], ['v', 'init', 'c']),
      [pod({ main: ['a'] })],
      [],
      ['a', 'b'],
    ],
    [
      'are also those of an init container that ended, of a pod with CPUs',
      file(['u', 'init', 'a'], ['v', 'init', 'b']),
      [pod({ main: [] })],
      ['v'],
      ['b'],
    ],
    ['are not those of a pod that is gone', file(['u', 'main', 'a']), [pod({ main: [] })], [], []],
    [
      'are not those of a pod that is gone while another container has the device',
      file(['u', 'other', 'a']),
      [pod({ main: ['a'] })],
      [],
      [],
    ],
  ];
  for (const [what, text, pods, podsWithCpus, expected] of cases) {
    it(what, () => {
      const devices = devicesOfPods(text, pods, new Set(podsWithCpus));
      assert.deepEqual([...new Set(devices.flatMap(({ deviceIds }) => deviceIds))].sort(), expected);
    });
  }

  const whole = file(['u', 'main', 'a']);
  for (const [what, text] of [
    ['torn', whole.slice(0, -20)],
    ['empty', ''],
    ['of another version', JSON.stringify({ Data: { PodDeviceEntries: {} } })],
  ] as const) {
    it(`are not known from a file that is ${what}`, () => {
      assert.throws(() => devicesOfPods(text, [], new Set()), PlumblineError);
    });
  }
});
