import assert from 'node:assert/strict';
import type { AdmissionRequest } from '../../../webhook/review/admission-review.ts';
import { createVmValidation } from '../../../webhook/vms/validate-vm.ts';
import { denialOf, kindOf, localnet, optionsOf, requestFor, viewOf } from '../launcher-fixture.ts';

const MASK = 'plumbline.dev/cpu-mask';
const AFFINITY = 'plumbline.dev/numa-affinity';
const VM = { group: 'kubevirt.io', version: 'v1', kind: 'VirtualMachine' };

interface Vm {
  readonly annotations?: Record<string, string>;
  readonly spec?: object;
  readonly namespace?: string;
}

const objectOf = ({ annotations = {}, spec = {}, namespace }: Vm) => ({
  metadata: { name: 'vm', ...(namespace && { namespace }) },
  spec: { template: { metadata: { annotations }, spec: { domain: { cpu: { cores: 2 } }, ...spec } } },
});
/** A mask for three vCPUs where there are two. */
const WRONG: Vm = { annotations: { [MASK]: '0:1:2' } };

const review = (vm: Vm, more: Partial<AdmissionRequest> = {}, options: Parameters<typeof optionsOf>[0] = {}) =>
  createVmValidation(optionsOf(options))(requestFor(objectOf(vm), { kind: VM, ...more }));

describe('reviews of VMs', () => {
  it('apply when a VM is created or updated', async () => {
    for (const operation of ['CREATE', 'UPDATE'] as const) {
      assert.equal(denialOf(await review(WRONG, { operation })).code, 422, operation);
    }
    for (const operation of ['DELETE', 'CONNECT'] as const) {
      assert.deepEqual(await review(WRONG, { operation }), { allowed: true }, operation);
    }
  });

  it('apply to whole objects, not to subresources', async () => {
    assert.equal((await review(WRONG, { subResource: '' })).allowed, false);
    assert.deepEqual(await review(WRONG, { subResource: 'status' }), { allowed: true });
  });

  it('apply to the kinds of KubeVirt from which VMIs are created', async () => {
    const kind = { ...VM, kind: 'VirtualMachinePreference' };
    assert.deepEqual(await review(WRONG, { kind }), { allowed: true });
  });

  const pinned: Vm = {
    spec: {
      domain: { cpu: { cores: 4, dedicatedCpuPlacement: true } },
      networks: [{ name: 'a', multus: { networkName: 'east' } }],
    },
  };

  const namespaces: [string, string | undefined, string | undefined, string][] = [
    ['of the request', 'asked', 'own', 'asked'],
    ['of the object, if the request has none', undefined, 'own', 'own'],
  ];
  for (const [what, asked, own, expected] of namespaces) {
    it(`search for networks in the namespace: ${what}`, async () => {
      const looked: string[] = [];
      const view = viewOf([kindOf(2)], {
        findNad: ({ namespace }) => {
          looked.push(namespace);
          return localnet('east');
        },
      });
      const { namespace: _, ...request } = requestFor(objectOf({ ...pinned, ...(own && { namespace: own }) }), {
        kind: VM,
      });
      await createVmValidation(optionsOf({ view }))({ ...request, ...(asked && { namespace: asked }) });
      assert.deepEqual([...new Set(looked)], [expected]);
    });
  }

  describe('that name a scheduler', () => {
    const route = { schedulerName: 'plumbline-scheduler', schedulerAway: () => undefined };
    const asking = { annotations: { [AFFINITY]: '{}' } };
    const named = (schedulerName: string, vm: Vm = asking): Vm => ({ ...vm, spec: { schedulerName } });
    const warned = async (vm: Vm, old?: Vm) => {
      const update = old && ({ operation: 'UPDATE', oldObject: objectOf(old) } as const);
      const answer = await review(vm, update, { route });
      assert.ok(answer.allowed);
      return (answer.warnings ?? []).some((text) => text.includes('scheduler'));
    };
    it('other than Plumbline’s warn once, if the VM asks for something', async () => {
      assert.equal(await warned(named('other')), true);
      assert.equal(await warned(named('other'), asking), true);
      assert.equal(
        await warned({ ...named('other'), annotations: { [AFFINITY]: '{"x":"none"}' } }, named('other')),
        false,
      );
      assert.equal(await warned(named('other', {})), false);
      assert.equal(await warned(named('plumbline-scheduler')), false);
      assert.equal(await warned(asking), false);
    });
  });

  const parts: [string, object][] = [
    ['networks', [{ name: 'a', multus: { networkName: 'east' } }]],
    ['nodeSelector', { zone: 'a' }],
    ['affinity', { nodeAffinity: {} }],
    ['livenessProbe', { tcpSocket: { port: 22 } }],
    ['schedulerName', 'other' as never],
    ['tolerations', [{ key: 'a', operator: 'Exists' }]],
  ];
  for (const [part, value] of parts) {
    it(`check an update of ${part}`, async () => {
      let looks = 0;
      const view = viewOf([kindOf(2)], {
        candidates: () => {
          looks++;
          return [kindOf(2)];
        },
      });
      const update = { operation: 'UPDATE', oldObject: objectOf({}) } as const;
      await review({}, update, { view });
      assert.equal(looks, 0, 'nothing changed');
      await review({ spec: { [part]: value } }, update, { view });
      assert.ok(looks > 0);
    });
  }
});
