import assert from 'node:assert/strict';
import { CpuSet, unionOf } from '../../../model/cpu-set.ts';
import { type Inputs, nextView, UNKNOWN_VIEW } from '../../../node-agent/assignments/view.ts';
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
}

function inputsOf({ online, policy = 'static', allocatable, shared, entries = [] }: Node): Inputs {
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
        listed: entries.map((list, i) => ({ namespace: 'n', podName: `p${i}`, container: 'c', cpus: cpus(list) })),
      },
      problem: undefined,
    },
  };
}

/** The mask of a thread after the sources were read, on a kernel with these CPUs. */
function maskOf(node: Node): string {
  const view = nextView(UNKNOWN_VIEW, inputsOf(node));
  const { cpus: allowed } = allowedCpus(view, { pmd: CpuSet.EMPTY, isolated: CpuSet.EMPTY, vacated: CpuSet.EMPTY });
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
  ];
  for (const [name, node, expected] of cases) it(name, () => assert.equal(maskOf(node), expected));
});
