import assert from 'node:assert/strict';
import jsonPatch from 'fast-json-patch';
import type { AdmissionRequest } from '../../../webhook/review/admission-review.ts';
import { createVmiMutation } from '../../../webhook/vms/mutate-vmi.ts';
import { denialOf, patchOf, requestFor } from '../launcher-fixture.ts';
import { CPU_MASK, objectOf, type Vm } from './fixture.ts';

const RECORD = 'plumbline.dev/paused-start';
const MASKED: Vm = { annotations: { [CPU_MASK]: '0:1' } };
const kindOf = (kind: string) => ({ group: 'kubevirt.io', version: 'v1', kind });
const vmiOf = (vm: Vm) => objectOf(vm, 'VirtualMachineInstance');
const create = (vm: Vm, more: Partial<AdmissionRequest> = {}) =>
  createVmiMutation()(requestFor(vmiOf(vm), { kind: kindOf('VirtualMachineInstance'), ...more }));

describe('new VMIs', () => {
  const paused = { record: 'waiting', strategy: 'Paused' };
  for (const [what, vm, outcome] of [
    ['with a mask start paused, which is recorded', MASKED, paused],
    ['without a mask start unchanged', {}, { record: undefined, strategy: undefined }],
    [
      'without a mask lose a record of theirs',
      { annotations: { [RECORD]: 'resumed' } },
      { record: undefined, strategy: undefined },
    ],
    [
      'with a mask get a record that replaces theirs',
      { annotations: { ...MASKED.annotations, [RECORD]: 'resumed' } },
      paused,
    ],
  ] as const) {
    it(what, async () => {
      const patch = structuredClone(patchOf(await create(vm))) as jsonPatch.Operation[];
      const { metadata, spec } = jsonPatch.applyPatch(vmiOf(vm), patch, true).newDocument as {
        metadata: { annotations: Record<string, string> };
        spec: { startStrategy?: string };
      };
      assert.deepEqual({ record: metadata.annotations[RECORD], strategy: spec.startStrategy }, outcome);
    });
  }

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
