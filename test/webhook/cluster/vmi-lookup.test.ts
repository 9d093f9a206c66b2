import assert from 'node:assert/strict';
import type { KubeClient } from '../../../kube/client.ts';
import { KubeError } from '../../../kube/errors.ts';
import { type Pod, pod as podSchema, type VirtualMachineInstance } from '../../../kube/resources.ts';
import { fitsLauncher } from '../../../model/launcher/fits.ts';
import { createVmiLookup } from '../../../webhook/cluster/vmi-lookup.ts';
import { podVector, setCpu, type TestPod, vmiVector } from '../launcher-fixture.ts';

const NETWORKS = 'k8s.v1.cni.cncf.io/networks';
const reference = { name: 'dpdk-fwd-01', uid: vmiVector().metadata.uid ?? '' };

function lookup(cached: VirtualMachineInstance | undefined, answer: unknown) {
  const asked: string[] = [];
  const get = async (path: string) => {
    asked.push(path);
    if (answer instanceof Error) throw answer;
    return answer;
  };
  const client = { get } as unknown as KubeClient;
  return { asked, lookUp: createVmiLookup({ client, timeout: 1, find: () => cached }) };
}

describe('looking a VMI up', () => {
  it('asks nobody while the watched copy has it and it fits', async () => {
    const { asked, lookUp } = lookup(vmiVector(), new Error('asked'));
    assert.equal((await lookUp('telco-east', reference, () => true)).kind, 'found');
    assert.deepEqual(asked, []);
  });

  const other = vmiVector((vmi) => {
    vmi.metadata.uid = 'other';
  });
  const cases: {
    name: string;
    cached: VirtualMachineInstance | undefined;
    fits?: boolean;
    answer: unknown;
    expected: string;
  }[] = [
    { name: 'a miss', cached: undefined, answer: vmiVector(), expected: 'found' },
    { name: 'another uid in the copy', cached: other, answer: vmiVector(), expected: 'found' },
    { name: 'a copy that does not fit', cached: vmiVector(), fits: false, answer: vmiVector(), expected: 'found' },
    { name: 'another uid at the API server', cached: undefined, answer: other, expected: 'replaced' },
    { name: 'a 404', cached: undefined, answer: new KubeError(404, 'NotFound', 'gone'), expected: 'absent' },
    {
      name: 'a timeout',
      cached: undefined,
      answer: new KubeError(0, 'Unreachable', 'timeout'),
      expected: 'unreadable',
    },
    { name: 'no permission', cached: undefined, answer: new KubeError(403, 'Forbidden', 'no'), expected: 'unreadable' },
    { name: 'nonsense', cached: undefined, answer: { spec: 7 }, expected: 'unreadable' },
  ];
  for (const { name, cached, fits = true, answer, expected } of cases) {
    it(`W6: asks once on ${name}: ${expected}`, async () => {
      const { asked, lookUp } = lookup(cached, answer);
      assert.equal((await lookUp('telco-east', reference, () => fits)).kind, expected);
      assert.deepEqual(asked, ['/apis/kubevirt.io/v1/namespaces/telco-east/virtualmachineinstances/dpdk-fwd-01']);
    });
  }
});

describe('whether a copy of a VMI fits its launcher', () => {
  const cases: [what: string, change: (pod: TestPod, vmi: VirtualMachineInstance) => void, expected: boolean][] = [
    ['as KubeVirt rendered it', () => undefined, true],
    ['padded', (pod) => setCpu(pod, '16'), true],
    ['more CPUs than padding explains: sockets were plugged in', (pod) => setCpu(pod, '17'), false],
    ['CPUs that are no whole cores of the VMI: a socket was plugged in', (pod) => setCpu(pod, '13'), false],
    ['fewer CPUs than the VMI has', (pod) => setCpu(pod, '8'), false],
    [
      'another affinity',
      (pod) => Object.assign(pod.metadata.annotations, { 'plumbline.dev/numa-affinity': '{}' }),
      false,
    ],
    [
      'a network that the VMI does not have: a NIC was plugged in',
      (pod) => Object.assign(pod.metadata.annotations, { [NETWORKS]: 'dpdk-net-east,new' }),
      false,
    ],
    ['a network unplugged', (pod) => delete pod.metadata.annotations[NETWORKS], true],
    [
      'any CPUs on the shared pool',
      (pod, vmi) => {
        setCpu(pod, '800m');
        delete vmi.spec.domain.cpu?.dedicatedCpuPlacement;
      },
      true,
    ],
  ];
  for (const [what, change, expected] of cases) {
    it(`${expected ? 'yes' : 'no'}: ${what}`, () => {
      const [pod, vmi] = [podVector(), vmiVector()];
      change(pod, vmi);
      const read: Pod = podSchema.parse(pod);
      assert.equal(fitsLauncher(read, 0, 'telco-east', vmi), expected);
    });
  }
});
