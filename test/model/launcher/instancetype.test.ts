import assert from 'node:assert/strict';
import { expandVmi } from '../../../model/launcher/instancetype.ts';
import type { VmiShape } from '../../../model/shapes.ts';

const LARGE = { cpu: { guest: 8, dedicatedCPUPlacement: true }, memory: { guest: '4Gi' } };
const VMI: VmiShape = { metadata: { annotations: { a: 'of the VM' } }, spec: { domain: {} } };

describe('a VM with an instancetype', () => {
  for (const [topology, spreadOptions, expected] of [
    [undefined, undefined, [8, 1, 1]],
    ['sockets', undefined, [8, 1, 1]],
    ['preferThreads', undefined, [1, 1, 8]],
    ['cores', undefined, [1, 8, 1]],
    ['spread', undefined, [4, 2, 1]],
    ['spread', { ratio: 4 }, [2, 4, 1]],
    ['spread', { across: 'CoresThreads' }, [1, 4, 2]],
    ['spread', { across: 'SocketsCoresThreads' }, [2, 2, 2]],
  ] as const) {
    it(`has ${expected} sockets, cores and threads: ${topology} ${JSON.stringify(spreadOptions ?? {})}`, () => {
      const preference = { cpu: { preferredCPUTopology: topology, spreadOptions } };
      const { sockets, cores, threads } = expandVmi(VMI, LARGE, preference).spec.domain.cpu ?? {};
      assert.deepEqual([sockets, cores, threads], expected);
    });
  }

  it('has one core for one vCPU, whatever is preferred', () => {
    const single = { ...LARGE, cpu: { guest: 1 } };
    const { cpu } = expandVmi(VMI, single, { cpu: { preferredCPUTopology: 'threads' } }).spec.domain;
    assert.deepEqual([cpu?.sockets, cpu?.cores, cpu?.threads], [1, 1, 1]);
  });

  it('has its own annotations before those of the instancetype and of the preference', () => {
    const preference = { annotations: { a: 'preferred', b: 'preferred', c: 'preferred' } };
    const instancetype = { ...LARGE, annotations: { a: 'of the type', b: 'of the type' } };
    const { annotations } = expandVmi(VMI, instancetype, preference).metadata;
    assert.deepEqual(annotations, { a: 'of the VM', b: 'of the type', c: 'preferred' });
    assert.deepEqual(expandVmi(VMI, undefined, preference).metadata.annotations, {
      ...preference.annotations,
      a: 'of the VM',
    });
  });

  it('has the devices of both', () => {
    const own = { ...VMI, spec: { domain: { devices: { gpus: [{ deviceName: 'a' }] } } } };
    const { devices } = expandVmi(own, { ...LARGE, gpus: [{ deviceName: 'b' }] }, undefined).spec.domain;
    assert.deepEqual(devices, { gpus: [{ deviceName: 'a' }, { deviceName: 'b' }], hostDevices: [] });
  });
});
