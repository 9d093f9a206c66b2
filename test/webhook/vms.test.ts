import assert from 'node:assert/strict';
import jsonPatch from 'fast-json-patch';
import { CpuSet } from '../../model/cpu-set.ts';
import type { MaskHost } from '../../model/placement/mask-fit.ts';
import type { AdmissionRequest } from '../../webhook/review/admission-review.ts';
import { createVmiMutation } from '../../webhook/vms/mutate-vmi.ts';
import { denialOf, patchOf, requestFor, viewOf } from './launcher-fixture.ts';
import { CPU_MASK, type Kind, objectOf, reviewVm, type Vm, type VmReview } from './vms/fixture.ts';

const FIX = 'plumbline.dev/fix-cpu-mismatch';
const CONTROLLER = 'system:serviceaccount:kubevirt:kubevirt-controller';
/** Two kinds of nodes with CPU 0 reserved; only the one in zone `far` has CPU 22. */
const near: MaskHost = { online: CpuSet.parse('0-3'), usable: CpuSet.parse('1-3') };
const far: MaskHost = { online: CpuSet.parse('0-2,22'), usable: CpuSet.parse('1-2,22') };
const ZONES: Readonly<Record<string, readonly MaskHost[]>> = {
  far: [far],
  none: [],
  off: [{ ...near, pinsVMs: false }],
};
const view = viewOf([], { maskHosts: ({ nodeSelector }) => ZONES[nodeSelector?.['zone'] ?? ''] ?? [near, far] });
interface Masked {
  readonly mask?: string;
  readonly fix?: string;
  readonly sockets?: number;
  readonly zone?: string;
  readonly running?: boolean;
}
const vmOf = ({ mask, fix, sockets = 2, zone, running }: Masked): Vm => ({
  annotations: { ...(mask !== undefined && { [CPU_MASK]: mask }), ...(fix !== undefined && { [FIX]: fix }) },
  spec: { domain: { cpu: { sockets } }, ...(zone !== undefined && { nodeSelector: { zone } }) },
  ...(running !== undefined && { status: { created: running } }),
});
const review = (kind: Kind, vm: Masked, old?: Masked, username = 'jane') => {
  const request: VmReview['request'] = { userInfo: { username } };
  return reviewVm(vmOf(vm), { kind, old: old && vmOf(old), options: { view }, request });
};
const ofMachine = (vm: Masked, old?: Masked) => review('VirtualMachine', vm, old);
const ofInstance = (vm: Masked, old: Masked, username?: string) => review('VirtualMachineInstance', vm, old, username);
describe('warnings of CPU masks', () => {
  const cases: readonly (readonly [name: string, vm: Masked, says: RegExp | undefined, old?: Masked])[] = [
    ['a mask that fits some node', { mask: '2:22' }, undefined],
    ['CPUs that no node has', { mask: '90' }, /no node .* has the CPUs of 90 online .* not start/],
    ['a CPU that every node reserves', { mask: '0' }, /unreserved: it will not start/],
    [
      'CPUs that no node has, with the fix',
      { mask: '90', fix: 'true' },
      /it will run on all CPUs of a node \(.*mismatch\)/,
    ],
    ['nodes that pin no VMs', { mask: '1', zone: 'off' }, /applies CPU masks \(--vm-pinning off\)/],
    ['nodes without a report', { mask: '1', zone: 'none' }, /reports its CPUs/],
    ['an earlier warning', { mask: '90', sockets: 3 }, undefined, { mask: '90' }],
    ['a mask of a running VM', { mask: '2', running: true }, /when it restarts/, { mask: '1' }],
    ['a removed mask of a running VM', { running: true }, /when it restarts/, { mask: '1' }],
    [
      'vCPUs and mask of a running VM',
      { mask: '1:2:3', sockets: 3, running: true },
      /hotplugged vCPUs/,
      { mask: '1:2' },
    ],
    ['another annotation of a running VM', { mask: '2', fix: 'true', running: true }, undefined, { mask: '2' }],
    ['a mask of a stopped VM', { mask: '2', running: false }, undefined, { mask: '1' }],
  ];
  for (const [name, vm, says, old] of cases)
    it(`${says === undefined ? 'none for' : 'for'} ${name}`, async () => {
      const answer = await ofMachine(vm, old);
      assert.ok(answer.allowed, answer.allowed ? '' : answer.message);
      const said = (answer.warnings ?? []).join('\n');
      if (says === undefined) assert.equal(said, '');
      else assert.match(said, says);
      for (const warning of answer.warnings ?? []) assert.ok(warning.length <= 256, warning);
    });
});
describe('vCPUs that KubeVirt hotplugs into a VM with a CPU mask', () => {
  it('are admitted for any number of entries of the mask: a refusal would block every later update of the VM', async () => {
    assert.ok((await ofMachine({ mask: '1:2:3', sockets: 3, running: true }, { mask: '1:2' })).allowed);
    for (const user of [CONTROLLER, 'system:serviceaccount:other-namespace:kubevirt-controller'])
      assert.ok((await ofInstance({ mask: '1:2', sockets: 3 }, { mask: '1:2' }, user)).allowed, user);
    const later = await ofInstance({ mask: '1:2', sockets: 3, zone: 'far' }, { mask: '1:2', sockets: 3 }, CONTROLLER);
    assert.ok(later.allowed, 'an update after that');
  });

  it('may arrive after a mask that KubeVirt copies, which it is only warned about', async () => {
    const { allowed, warnings } = await ofInstance({ mask: '1:2:3' }, { mask: '1:2' }, CONTROLLER);
    assert.ok(allowed);
    assert.match(warnings?.join() ?? '', /entries for 3 vCPUs, but the VM has 2/);
  });

  it('do not allow users to write contradictions', async () => {
    const refused = /entries for 2 vCPUs, but the VM has 3/;
    assert.match(denialOf(await ofMachine({ mask: '1:2', sockets: 3 }, { mask: '1:2' })).message, refused);
    for (const user of ['jane', 'system:serviceaccount:tenant:robot', 'kubevirt-controller']) {
      const { message } = denialOf(await ofInstance({ mask: '1:2', sockets: 3 }, { mask: '1', sockets: 3 }, user));
      assert.match(message, refused, user);
    }
    const made = await review('VirtualMachineInstance', { mask: '1:2', sockets: 3 }, undefined, CONTROLLER);
    assert.match(denialOf(made).message, refused, 'a new VMI');
  });
});

const RECORD = 'plumbline.dev/paused-start';
const MASKED: Vm = { annotations: { [CPU_MASK]: '0:1' } };
const kindOf = (kind: string) => ({ group: 'kubevirt.io', version: 'v1', kind });
const vmiOf = (vm: Vm) => objectOf(vm, 'VirtualMachineInstance');
const create = (vm: Vm, more: Partial<AdmissionRequest> = {}) =>
  createVmiMutation()(requestFor(vmiOf(vm), { kind: kindOf('VirtualMachineInstance'), ...more }));
describe('new VMIs', () => {
  const own = { [RECORD]: 'resumed' };
  for (const [what, vm, isPaused] of [
    ['with a mask start paused, which is recorded', MASKED, true],
    ['without a mask start unchanged', {}, false],
    ['without a mask lose a record of theirs', { annotations: own }, false],
    ['with a mask get a record that replaces theirs', { annotations: { ...MASKED.annotations, ...own } }, true],
  ] as const)
    it(what, async () => {
      const patch = structuredClone(patchOf(await create(vm))) as jsonPatch.Operation[];
      const { metadata, spec } = jsonPatch.applyPatch(vmiOf(vm), patch, true).newDocument as {
        metadata: { annotations: Record<string, string> };
        spec: { startStrategy?: string };
      };
      const start = [metadata.annotations[RECORD], spec.startStrategy];
      assert.deepEqual(start, isPaused ? ['waiting', 'Paused'] : [undefined, undefined]);
    });

  it('are refused with a mask that cannot be read', async () => {
    const { code, message } = denialOf(await create({ annotations: { [CPU_MASK]: '1:' } }));
    assert.equal(code, 422);
    assert.match(message, /CPU mask "1:": entry 2 \(for vCPU 1\) is empty/);
  });
  it('are refused if they cannot be read, because their start is unknown', async () =>
    assert.equal(denialOf(await create({ ...MASKED, spec: { domain: { cpu: { cores: 'two' } } } })).code, 400));
  it('are the only objects that change: no updates and no other kinds', async () => {
    for (const more of [{ operation: 'UPDATE' }, { kind: kindOf('VirtualMachine') }] as const)
      assert.deepEqual(await create(MASKED, more), { allowed: true });
  });
});
