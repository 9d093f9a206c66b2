import assert from 'node:assert/strict';
import { CPU_MASK_ANNOTATION, PAUSED_START_ANNOTATION } from '../../../model/names.ts';
import { createMaskedVms, type MaskedInstance } from '../../../scheduler-plugin/cluster/masked-vms.ts';
import { silent } from '../../support/logger.ts';
import { until } from '../../support/until.ts';
import { createApi } from './watch-fixture.ts';

const VMS = '/apis/kubevirt.io/v1/virtualmachines';
const VMIS = '/apis/kubevirt.io/v1/virtualmachineinstances';
const MASK = { annotations: { [CPU_MASK_ANNOTATION]: '2:3' } };
const domain = { cpu: { sockets: 1, cores: 2, threads: 1 }, devices: {} };
const owner = (kind: string) => ({
  ownerReferences: [{ apiVersion: 'kubevirt.io/v1', kind, name: 'owner', uid: 'owner-uid', controller: true }],
});

describe('the watch of the extender for VMs with CPU masks', () => {
  const api = createApi();
  const ending = new AbortController();
  const instances = new Map<string, MaskedInstance | undefined>();
  const masked = createMaskedVms({
    client: api.client,
    onInstance: (key, one) => void instances.set(key, one),
    log: silent,
    now: () => 0,
  });
  let running: Promise<void>;
  before(async () => {
    running = masked.run(ending.signal);
    await until('the watches', () => api.watched(VMS) && api.watched(VMIS));
  });
  after(() => {
    ending.abort();
    return running;
  });

  /** What is reported of a VMI after a change. */
  const changed = async (name: string, metadata: object, status: object = {}, type = 'ADDED') => {
    instances.delete(name);
    api.push(VMIS, type, { metadata: { name, resourceVersion: '2', ...metadata }, spec: { domain }, status });
    await until(name, () => instances.has(name));
    return instances.get(name);
  };

  it('ignores a VMI without a mask and without a waiting start', async () => {
    api.push(VMIS, 'ADDED', { metadata: { name: 'plain', resourceVersion: '2' }, spec: { domain } });
    await changed('after', MASK);
    assert.equal(instances.has('plain'), false);
    assert.equal([...masked.all()].length, 1);
  });

  it('reports where a VMI with a mask runs and since when it is paused', async () => {
    const since = '2026-11-01T10:00:00Z';
    const conditions = [
      { type: 'Ready', status: 'True', reason: 'Up', lastTransitionTime: '2026-11-01T09:00:00Z' },
      { type: 'Paused', status: 'False', reason: 'Before', lastTransitionTime: '2026-11-01T09:30:00Z' },
      { type: 'Paused', status: 'True', reason: 'PausedByUser', lastTransitionTime: since },
    ];
    const status = { phase: 'Running', nodeName: 'n1', activePods: { 'pod-uid': 'n1' }, conditions };
    const { node, pods, phase, paused, ofMachine, record } = (await changed('paused', MASK, status)) ?? assert.fail();
    assert.deepEqual(
      [node, pods, phase, paused, ofMachine, record],
      ['n1', { 'pod-uid': 'n1' }, 'Running', { reason: 'PausedByUser', since }, false, undefined],
    );
  });

  it('counts a VMI that a VM created once, with its VM', async () => {
    const template = { metadata: MASK, spec: { domain } };
    api.push(VMS, 'ADDED', { metadata: { name: 'machine', resourceVersion: '2' }, spec: { template } });
    assert.equal((await changed('made', { ...MASK, ...owner('VirtualMachine') }))?.ofMachine, true);
    assert.equal(
      (await changed('pooled', { ...MASK, ...owner('VirtualMachineInstanceReplicaSet') }))?.ofMachine,
      false,
    );
    await until('after, paused, pooled and the VM', () => [...masked.all()].length === 4);
  });

  it('keeps a VMI without a mask if its start waits, and drops a VMI that is being deleted', async () => {
    const waits = { annotations: { [PAUSED_START_ANNOTATION]: 'waiting' } };
    assert.notEqual(await changed('waits', waits), undefined);
    assert.equal(
      await changed('waits', { ...waits, deletionTimestamp: '2026-11-01T10:00:00Z' }, {}, 'MODIFIED'),
      undefined,
    );
  });
});
