import assert from 'node:assert/strict';
import jsonPatch from 'fast-json-patch';
import type { AdmissionRequest } from '../../../webhook/review/admission-review.ts';
import { createVmiMutation } from '../../../webhook/vms/mutate-vmi.ts';
import { denialOf, patchOf, requestFor } from '../launcher-fixture.ts';

const MASK = 'plumbline.dev/cpu-mask';
const START = 'plumbline.dev/cpu-mask-start';
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
    ['without a mask start as they are', {}, untouched],
    ['with a mask that pins nothing start as they are', { annotations: { [MASK]: 'all' } }, untouched],
    [
      'that their user has start paused are recorded nowhere',
      { annotations: { [MASK]: '0:1' }, spec: { startStrategy: 'Paused' } },
      { record: undefined, strategy: 'Paused' },
    ],
    [
      'with a liveness probe are not paused',
      { annotations: { [MASK]: '0:1' }, spec: { livenessProbe: { tcpSocket: { port: 22 } } } },
      untouched,
    ],
    [
      'whose user has them pinned once they run are not paused',
      { annotations: { [MASK]: '0:1', [START]: 'running' } },
      untouched,
    ],
    [
      'whose user has them pinned once they run bring no record either',
      { annotations: { [MASK]: '0:1', [START]: 'running', [RECORD]: 'waiting' } },
      untouched,
    ],
    ['with an unknown kind of start are paused', { annotations: { [MASK]: '0:1', [START]: 'Running' } }, paused],
    ['with a mask and the default start are paused', { annotations: { [MASK]: '0:1', [START]: 'paused' } }, paused],
    ['bring no record of their own', { annotations: { [RECORD]: 'waiting' } }, untouched],
    [
      'bring none either if the start is their user’s choice',
      { annotations: { [MASK]: '0:1', [RECORD]: 'waiting' }, spec: { startStrategy: 'Paused' } },
      { record: undefined, strategy: 'Paused' },
    ],
    ['have theirs overwritten', { annotations: { [MASK]: '0:1', [RECORD]: 'resumed' } }, paused],
  ];
  for (const [what, vmi, outcome] of cases) {
    it(what, async () => assert.deepEqual(await stored(vmi), outcome));
  }

  it('are refused with a mask that cannot be read', async () => {
    const { code, message } = denialOf(await create({ annotations: { [MASK]: '1:' } }));
    assert.equal(code, 422);
    assert.match(message, /CPU mask "1:": entry 2 \(for vCPU 1\) is empty/);
  });
  it('are refused where they cannot be read, since it is not known how they would start', async () => {
    const spec = { domain: { cpu: { cores: 'two' } } };
    assert.equal(denialOf(await create({ annotations: { [MASK]: '0' }, spec })).code, 400);
  });
  it('alone are changed: no update, and no other kind', async () => {
    const vmi = { annotations: { [MASK]: '0:1' } };
    assert.deepEqual(await create(vmi, { operation: 'UPDATE' }), { allowed: true });
    assert.deepEqual(await create(vmi, { kind: { group: 'kubevirt.io', version: 'v1', kind: 'VirtualMachine' } }), {
      allowed: true,
    });
  });
});
