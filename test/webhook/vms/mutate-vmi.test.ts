import assert from 'node:assert/strict';
import jsonPatch from 'fast-json-patch';
import type { AdmissionRequest } from '../../../webhook/review/admission-review.ts';
import { createVmiMutation } from '../../../webhook/vms/mutate-vmi.ts';
import { denialOf, patchOf, requestFor } from '../launcher-fixture.ts';

const MASK = 'plumbline.dev/cpu-mask';
const RECORD = 'plumbline.dev/paused-start';

interface Vmi {
  readonly annotations?: Record<string, string>;
  readonly spec?: object;
}

const objectOf = ({ annotations, spec = {} }: Vmi) => ({
  metadata: { name: 'vm', namespace: 'default', ...(annotations && { annotations }) },
  spec: { domain: { cpu: { cores: 2 } }, ...spec },
});

async function create(vmi: Vmi, more: Partial<AdmissionRequest> = {}) {
  return createVmiMutation()(
    requestFor(objectOf(vmi), {
      kind: { group: 'kubevirt.io', version: 'v1', kind: 'VirtualMachineInstance' },
      ...more,
    }),
  );
}

async function stored(vmi: Vmi) {
  const patch = patchOf(await create(vmi)) as jsonPatch.Operation[];
  const { newDocument } = jsonPatch.applyPatch(objectOf(vmi), structuredClone(patch), true);
  const { metadata, spec } = newDocument as { metadata: { annotations?: Record<string, string> }; spec: object };
  return { record: metadata.annotations?.[RECORD], strategy: (spec as { startStrategy?: string }).startStrategy };
}

describe('new VMIs', () => {
  const paused = { record: 'waiting', strategy: 'Paused' };
  const untouched = { record: undefined, strategy: undefined };
  const cases: [string, Vmi, object][] = [
    ['with a mask start paused, which is recorded', { annotations: { [MASK]: '0:1' } }, paused],
    ['without a mask start unchanged', {}, untouched],
    ['with a mask get a record that replaces theirs', { annotations: { [MASK]: '0:1', [RECORD]: 'resumed' } }, paused],
  ];
  for (const [what, vmi, outcome] of cases) {
    it(what, async () => assert.deepEqual(await stored(vmi), outcome));
  }

  it('are refused with a mask that cannot be read', async () => {
    const { code, message } = denialOf(await create({ annotations: { [MASK]: '1:' } }));
    assert.equal(code, 422);
    assert.match(message, /CPU mask "1:": entry 2 \(for vCPU 1\) is empty/);
  });
  it('are refused if they cannot be read, because their start is unknown', async () => {
    const spec = { domain: { cpu: { cores: 'two' } } };
    assert.equal(denialOf(await create({ annotations: { [MASK]: '0' }, spec })).code, 400);
  });
  it('are the only objects that change: no updates and no other kinds', async () => {
    const vmi = { annotations: { [MASK]: '0:1' } };
    assert.deepEqual(await create(vmi, { operation: 'UPDATE' }), { allowed: true });
    assert.deepEqual(await create(vmi, { kind: { group: 'kubevirt.io', version: 'v1', kind: 'VirtualMachine' } }), {
      allowed: true,
    });
  });
});
