import assert from 'node:assert/strict';
import { CpuSet, unionOf } from '../../../model/cpu-set.ts';
import { type Inputs, nextView, UNKNOWN_VIEW } from '../../../node-agent/assignments/view.ts';
import { parsePmdMask } from '../../../node-agent/networks/switch-config.ts';
import { allowedCpus } from '../../../node-agent/ovs-affinity/confirmation.ts';
import { FakeKernel } from './kernel-stand-in.ts';
import { cpus } from './stage.ts';

interface Node {
  readonly online: string;
  readonly policy?: string;
  readonly allocatable: string;
  /** defaultCpuSet of the checkpoint. */
  readonly shared: string;
  /** CPU lists of the checkpoint's entries. */
  readonly entries?: readonly string[];
  /** CPU lists in the answer of List; by default the entries. */
  readonly listed?: readonly string[];
}

function inputsOf({ online, policy = 'static', allocatable, shared, entries = [], listed = entries }: Node): Inputs {
  const assigned = entries.map((list, i) => ({ podUID: `uid-${i}`, container: 'c', cpus: cpus(list) }));
  return {
    online: cpus(online),
    confirmed: true,
    alone: false,
    configuredPolicy: undefined,
    claims: { value: [], problem: undefined },
    checkpoint: {
      value: {
        policy,
        defaultCpus: cpus(shared),
        entries: assigned,
        owned: unionOf(assigned.map((entry) => entry.cpus)),
      },
      problem: undefined,
    },
    podResources: {
      value: {
        allocatable: cpus(allocatable),
        devices: [],
        claimNames: new Map(),
        memory: { cells: new Map() },
        listed: listed.map((list, i) => ({ namespace: 'n', podName: `p${i}`, container: 'c', cpus: cpus(list) })),
      },
      problem: undefined,
    },
  };
}

const none = { pmd: CpuSet.EMPTY, isolated: CpuSet.EMPTY, vacated: CpuSet.EMPTY };

/** The mask of a thread after the sources were read, on a kernel with these CPUs. */
function maskOf(node: Node, leftOut: Partial<typeof none> = {}): string {
  const view = nextView(UNKNOWN_VIEW, inputsOf(node));
  const { cpus: allowed } = allowedCpus(view, { ...none, ...leftOut });
  const kernel = new FakeKernel();
  kernel.online = node.online;
  kernel.thread(100, node.online);
  kernel.thread(101, node.online);
  kernel.keeper().apply({ only: allowed ?? CpuSet.EMPTY });
  const masks = new Set(Object.values(kernel.maskTexts()));
  assert.equal(masks.size, 1);
  return [...masks][0] ?? '';
}

describe('from CPU owners to the mask in the kernel', () => {
  // allocatable, reserved, used -> mask
  const table: [string, string, string[], string][] = [
    ['0-1', '2-3', ['1'], '0,2-3'],
    ['0-1', '2-3', ['0', '1'], '2-3'],
    ['0-1', '2-3', [], '0-3'],
    ['0-2', '3', ['0', '2'], '1,3'],
    ['1-3', '0', ['3'], '0-2'],
  ];
  for (const [allocatable, reserved, used, expected] of table) {
    const online = cpus(allocatable).union(cpus(reserved)).toString();
    const left = cpus(allocatable).minus(unionOf(used.map(cpus)));
    it(`allocatable ${allocatable}, reserved ${reserved}, used [${used}]: ${expected}`, () => {
      const shared = left.union(cpus(reserved)).toString();
      assert.equal(maskOf({ online, allocatable, shared, entries: used }), expected);
      // With strict-cpu-reservation the shared pool lacks the reserved CPUs.
      assert.equal(maskOf({ online, allocatable, shared: left.toString(), entries: used }), expected);
    });
  }

  const cases: [string, Node, string][] = [
    ['policy none uses every CPU', { online: '0-7', policy: 'none', allocatable: '', shared: '' }, '0-7'],
    [
      'CPUs reserved by quantity (kubeReserved) are those that are not allocatable, and are used',
      { online: '0-7', allocatable: '1-7', shared: '0,4-7', entries: ['1-3'] },
      '0,4-7',
    ],
    [
      'leftover CPUs of an init container, which List does not show, stay owned',
      { online: '0-7', allocatable: '1-7', shared: '0,6-7', entries: ['2-3', '1-5'], listed: ['2-3'] },
      '0,6-7',
    ],
    [
      'between two writes: the pool has shrunk, the entry is still missing',
      { online: '0-7', allocatable: '1-7', shared: '0,4-7', entries: [], listed: [] },
      '0,4-7',
    ],
    [
      'between two writes in the other order: the entry exists, the pool has not shrunk yet',
      { online: '0-7', allocatable: '1-7', shared: '0-7', entries: ['1-3'], listed: [] },
      '0,4-7',
    ],
    [
      'the kubelet’s List is newer than its checkpoint',
      { online: '0-7', allocatable: '1-7', shared: '0-7', entries: [], listed: ['5'] },
      '0-4,6-7',
    ],
  ];
  for (const [name, node, expected] of cases) it(name, () => assert.equal(maskOf(node), expected));
});

describe('unowned CPUs that are not used', () => {
  const node: Node = { online: '0-7', allocatable: '1-7', shared: '0-7' };
  const cases: [string, Partial<typeof none>, string][] = [
    ['belong to poll mode drivers', { pmd: cpus('2-3') }, '0-1,4-7'],
    ['isolated', { isolated: cpus('4-7') }, '0-3'],
    ['are isolated, unless there is no other CPU', { isolated: cpus('0-7') }, '0-7'],
    ['are isolated, except those of poll mode drivers', { isolated: cpus('0-5'), pmd: cpus('6-7') }, '0-5'],
    ['belong to poll mode drivers, unless there is no other CPU', { pmd: cpus('0-7') }, '0-7'],
    ['are vacated for a container that starts', { vacated: cpus('1-2') }, '0,3-7'],
  ];
  for (const [name, leftOut, expected] of cases) it(name, () => assert.equal(maskOf(node, leftOut), expected));

  it('belong to poll mode drivers, with policy none, too', () => {
    assert.equal(maskOf({ online: '0-3', policy: 'none', allocatable: '', shared: '' }, { pmd: cpus('3') }), '0-2');
  });

  it('are listed with a reason', () => {
    const view = nextView(UNKNOWN_VIEW, inputsOf({ ...node, shared: '0,2-7', entries: ['1'] }));
    const { why } = allowedCpus(view, { pmd: cpus('2'), isolated: cpus('7'), vacated: cpus('3') });
    assert.deepEqual(why, [
      '1: owned by containers',
      '3: vacated for a container that starts',
      '2: poll mode drivers',
      '7: isolated',
    ]);
  });
});

describe('pmd-cpu-mask', () => {
  const forms: [string, string][] = [
    ['0xc', '2-3'],
    ['0XC', '2-3'],
    ['c', '2-3'],
    ['0x0', ''],
    ['', ''],
    ['0x000000000000000c', '2-3'],
    ['0x10000000000000000', '64'],
    [`1${'0'.repeat(32)}`, '128'],
  ];
  for (const [text, expected] of forms) {
    it(`${JSON.stringify(text)}: ${expected || 'no CPU'}`, () => {
      const problems: string[] = [];
      assert.equal(parsePmdMask(text, problems).toString(), expected);
      assert.deepEqual(problems, []);
    });
  }
  for (const text of ['garbage', '0xg', '1-3', '-1', '0x 1']) {
    it(`${JSON.stringify(text)}: no CPU, and a problem`, () => {
      const problems: string[] = [];
      assert.equal(parsePmdMask(text, problems).toString(), '');
      assert.match(problems.join(), /pmd-cpu-mask/);
    });
  }
});
