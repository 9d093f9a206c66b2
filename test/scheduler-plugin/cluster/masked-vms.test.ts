import assert from 'node:assert/strict';
import { CPU_MASK_ANNOTATION, PAUSED_START_ANNOTATION } from '../../../model/names.ts';
import { createMaskedVms, type MaskedInstance } from '../../../scheduler-plugin/cluster/masked-vms.ts';
import { type ApiFixture, startApi } from '../../kube/api-fixture.ts';
import { eventually } from '../../support/eventually.ts';
import { silent } from '../../support/logger.ts';

const API = '/apis/kubevirt.io/v1/namespaces/default';
const MASK = { [CPU_MASK_ANNOTATION]: '2:3' };
const domain = { cpu: { sockets: 1, cores: 2, threads: 1 }, devices: {} };

const instance = (name: string, annotations: object, more: { status?: object; metadata?: object } = {}) => ({
  apiVersion: 'kubevirt.io/v1',
  kind: 'VirtualMachineInstance',
  metadata: { name, annotations, ...more.metadata },
  spec: { domain },
  status: more.status ?? {},
});
const owner = (kind: string) => ({
  ownerReferences: [{ apiVersion: 'kubevirt.io/v1', kind, name: 'owner', uid: 'owner-uid', controller: true }],
});

describe('the watch of the extender for VMs with CPU masks', () => {
  let api: ApiFixture;
  let ending: AbortController;
  let running: Promise<void>;
  let masked: ReturnType<typeof createMaskedVms>;
  const instances = new Map<string, MaskedInstance | undefined>();

  before(async () => {
    api = await startApi();
    ending = new AbortController();
    masked = createMaskedVms({
      client: api.client,
      onInstance: (key, one) => void instances.set(key.split('/').at(-1) ?? '', one),
      log: silent,
      now: () => performance.now() / 1000,
    });
    running = masked.run(ending.signal);
  });
  after(async () => {
    ending.abort();
    await running;
    await api.stop();
  });

  const arrived = async (name: string) => {
    await eventually(() => instances.has(name), name);
    return instances.get(name);
  };
  const create = (object: { kind: string }) => api.client.create(`${API}/${object.kind.toLowerCase()}s`, object);

  it('ignores a VMI without a mask and without a waiting start', async () => {
    await create(instance('plain', {}));
    await create(instance('after', MASK));
    await arrived('after');
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
    await create(instance('paused', MASK, { status }));
    const found = await arrived('paused');
    assert.deepEqual(
      [found?.node, found?.pods, found?.phase, found?.paused, found?.ofMachine],
      ['n1', { 'pod-uid': 'n1' }, 'Running', { reason: 'PausedByUser', since }, false],
    );
    assert.equal(found?.record, undefined);
  });

  it('counts a VMI that a VM created once, with its VM', async () => {
    const template = { metadata: { annotations: MASK }, spec: { domain } };
    await create({ ...instance('machine', {}), kind: 'VirtualMachine', spec: { template } } as { kind: string });
    await create(instance('made', MASK, { metadata: owner('VirtualMachine') }));
    await create(instance('pooled', MASK, { metadata: owner('VirtualMachineInstanceReplicaSet') }));
    assert.equal((await arrived('made'))?.ofMachine, true);
    assert.equal((await arrived('pooled'))?.ofMachine, false);
    await eventually(() => [...masked.all()].length === 4, 'after, paused, pooled and the VM');
  });

  it('keeps a VMI without a mask if its start waits, and drops a VMI that is being deleted', async () => {
    const record = { [PAUSED_START_ANNOTATION]: 'waiting' };
    await create(instance('waits', record));
    assert.notEqual(await arrived('waits'), undefined);
    await create(instance('leaves', MASK, { metadata: { finalizers: ['test/hold'] } }));
    assert.notEqual(await arrived('leaves'), undefined);
    await api.client.delete(`${API}/virtualmachineinstances/leaves`);
    await eventually(() => instances.get('leaves') === undefined, 'the VMI to be dropped');
  });
});
