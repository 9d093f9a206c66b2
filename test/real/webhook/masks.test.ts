import assert from 'node:assert/strict';
import type { KubeClient } from '../../../kube/client.ts';
import { deniedByPolicy } from '../../support/denied.ts';
import { namespaceOf, onControlPlane, podOf } from '../control-plane-stage.ts';
import { type InstalledWebhook, installWebhook } from './installed-stage.ts';
import { bindingOf, userSubject } from './policies-stage.ts';

const MASK = 'plumbline.dev/cpu-mask';
const RECORD = 'plumbline.dev/paused-start';
const RECORD_POLICY = deniedByPolicy('plumbline-paused-start');
const GROUP = 'rbac.authorization.k8s.io';
const API = '/apis/kubevirt.io/v1/namespaces/tenant';
const VMIS = `${API}/virtualmachineinstances`;
const PODS = '/api/v1/namespaces/tenant/pods';
const MERGE = 'application/merge-patch+json';
const DRY = { query: { dryRun: 'All' } };

interface StoredVmi {
  readonly metadata: { readonly uid: string; readonly annotations?: Readonly<Record<string, string>> };
  readonly spec: { readonly startStrategy?: string };
}

const vmiOf = (name: string, annotations: Record<string, string>, spec: object = {}) => ({
  apiVersion: 'kubevirt.io/v1',
  kind: 'VirtualMachineInstance',
  metadata: { name, namespace: 'tenant', annotations },
  spec: { domain: { cpu: { cores: 2 } }, ...spec },
});
const launcherOf = (vmi: string, uid: string, mask: string, more: Record<string, string> = {}) => {
  const owner = { apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachineInstance', name: vmi, uid, controller: true };
  const labels = { 'kubevirt.io': 'virt-launcher', ...more };
  const containers = [{ name: 'compute', image: 'none', resources: { requests: { cpu: '200m' } } }];
  const metadata = { generateName: 'virt-launcher-', labels, annotations: { [MASK]: mask }, ownerReferences: [owner] };
  return podOf(metadata, { containers });
};

describe('CPU masks behind a real API server', function () {
  onControlPlane(this);
  let installed: InstalledWebhook;
  let client: KubeClient;
  let owner: KubeClient;
  let guest: KubeClient;
  let extender: KubeClient;
  let controller: KubeClient;
  before(async () => {
    const role = 'vms-and-pods';
    const rules = [
      { apiGroups: ['kubevirt.io'], resources: ['*'], verbs: ['*'] },
      { apiGroups: [''], resources: ['pods', 'pods/status'], verbs: ['*'] },
    ];
    const kubevirt = { kind: 'ServiceAccount', name: 'kubevirt-controller', namespace: 'kubevirt' };
    installed = await installWebhook({
      users: ['owner', 'guest'],
      before: [namespaceOf('tenant'), namespaceOf('kubevirt')],
      after: [
        { apiVersion: `${GROUP}/v1`, kind: 'ClusterRole', metadata: { name: role }, rules },
        bindingOf(userSubject('owner'), 'cluster-admin', 'tenant'),
        bindingOf(userSubject('guest'), role, 'tenant'),
        bindingOf(kubevirt, role, undefined),
      ],
    });
    client = installed.client;
    owner = await installed.user('owner');
    guest = await installed.user('guest');
    extender = await installed.account('plumbline-system', 'plumbline-scheduler');
    controller = await installed.account('kubevirt', 'kubevirt-controller');
  });
  after(() => installed?.stop());

  const annotate = (as: KubeClient, path: string, annotations: object) =>
    as.patch(path, MERGE, { metadata: { annotations } });
  const stored = async (name: string) => (await client.get(`${VMIS}/${name}`)) as StoredVmi;
  const startOf = async (name: string) => {
    const { metadata, spec } = await stored(name);
    return [spec.startStrategy, metadata.annotations?.[RECORD]];
  };

  describe('the start of a VMI', () => {
    const cases: [string, Record<string, string>, object, (string | undefined)[]][] = [
      ['masked', { [MASK]: '0:1' }, {}, ['Paused', 'waiting']],
      ['plain', {}, {}, [undefined, undefined]],
      ['users-own', { [MASK]: '0:1' }, { startStrategy: 'Paused' }, ['Paused', undefined]],
      ['forged-masked', { [MASK]: '0', [RECORD]: 'waiting' }, { startStrategy: 'Paused' }, ['Paused', undefined]],
    ];
    for (const [name, annotations, spec, start] of cases) {
      it(`${name}: ${start.filter(Boolean).join(', ') || 'as it is'}`, async () => {
        await owner.create(VMIS, vmiOf(name, annotations, spec));
        assert.deepEqual(await startOf(name), start);
      });
    }
  });

  describe('its record', () => {
    it('cannot be written, changed or removed by any user of the namespace', async () => {
      await owner.create(VMIS, vmiOf('recorded', { [MASK]: '0:1' }));
      for (const value of ['resumed', null])
        await assert.rejects(annotate(owner, `${VMIS}/recorded`, { [RECORD]: value }), RECORD_POLICY);
      await owner.create(VMIS, vmiOf('never', {}));
      await assert.rejects(annotate(owner, `${VMIS}/never`, { [RECORD]: 'waiting' }), RECORD_POLICY);
      assert.deepEqual(await startOf('recorded'), ['Paused', 'waiting']);
      await annotate(owner, `${VMIS}/recorded`, { note: 'mine' });
    });

    it('is written by the extender, which may write nothing else there', async () => {
      await owner.create(VMIS, vmiOf('extended', { [MASK]: '0:1' }));
      const { metadata } = await stored('extended');
      const path = `${VMIS}/extended`;
      const record = (value: string) => ({ uid: metadata.uid, annotations: { [RECORD]: value } });
      await extender.patch(path, MERGE, { metadata: record('paused 2026-11-01T10:00:00Z') });
      assert.deepEqual(await startOf('extended'), ['Paused', 'paused 2026-11-01T10:00:00Z']);
      const others: [string, object][] = [
        ['spec', { spec: { startStrategy: null } }],
        ['status', { status: { phase: 'Running' } }],
        ['labels', { metadata: { labels: { a: 'b' } } }],
        ['an annotation', { metadata: { annotations: { note: 'x' } } }],
        ['the mask', { metadata: { annotations: { [MASK]: null } } }],
        ['finalizers', { metadata: { finalizers: ['a.example/b'] } }],
      ];
      for (const [what, change] of others) {
        await assert.rejects(extender.patch(path, MERGE, change), RECORD_POLICY, what);
      }
      await assert.rejects(
        extender.patch(path, MERGE, { metadata: { ...record('resumed'), uid: 'another' } }),
        /Precondition failed|uid|Conflict|409/i,
        'a VMI in another’s place',
      );
      await extender.patch(path, MERGE, { metadata: record('resumed') });
      await assert.rejects(extender.delete(path), /403 Forbidden/);
      await assert.rejects(extender.get(path), /403 Forbidden/);
    });
  });

  describe('a mask', () => {
    it('takes a permission in the namespace, for the launcher, too, which the agent reads', async () => {
      const refusal = /user guest may not use CPU masks in namespace tenant/;
      await assert.rejects(guest.create(VMIS, vmiOf('without', { [MASK]: '0' })), refusal);
      const { metadata } = (await client.create(VMIS, vmiOf('guests', {}))) as StoredVmi;
      await assert.rejects(guest.create(PODS, launcherOf('guests', metadata.uid, '0')), refusal);
      const { generateName: _, annotations: __, ...bare } = launcherOf('guests', metadata.uid, '').metadata;
      await guest.create(PODS, { ...launcherOf('guests', metadata.uid, ''), metadata: { ...bare, name: 'bare' } });
      for (const path of [`${PODS}/bare/status`, `${PODS}/bare`]) {
        await assert.rejects(annotate(guest, path, { [MASK]: '0' }), refusal);
      }
      await annotate(owner, `${PODS}/bare`, { [MASK]: '0' });
      await annotate(guest, `${PODS}/bare`, { note: 'mine' });
    });
  });

  describe('CPU hotplug of a VM with a mask', () => {
    const specOf = (sockets: number) => ({ domain: { cpu: { sockets, cores: 1, threads: 1, maxSockets: 4 } } });
    const masked = (mask: string) => ({ metadata: { annotations: { [MASK]: mask } } });
    const changeVm = (template: object) => owner.patch(`${API}/virtualmachines/vm`, MERGE, { spec: { template } });
    let uid = '';
    before(async () => {
      const template = { ...masked('1:2'), spec: specOf(2) };
      const vm = { apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachine', metadata: { name: 'vm' }, spec: { template } };
      await owner.create(`${API}/virtualmachines`, vm);
      const made = await controller.create(VMIS, vmiOf('vm', { [MASK]: '1:2' }, specOf(2)));
      uid = (made as StoredVmi).metadata.uid;
    });

    it('users change vCPUs and mask together; either alone is refused', async () => {
      const refusal = /entries for \d vCPUs, but the VM has \d/;
      await assert.rejects(changeVm({ spec: { domain: { cpu: { sockets: 3 } } } }), refusal);
      await assert.rejects(changeVm(masked('1:2:3')), refusal);
      await changeVm({ ...masked('1:2:3'), spec: { domain: { cpu: { sockets: 3 } } } });
    });

    it('KubeVirt plugs the vCPU in with a migration, and passes the new mask on; users cannot contradict', async () => {
      // The request of VMICPUsPatch (pkg/virt-controller/watch/vm/vm.go).
      await controller.patch(`${VMIS}/vm`, 'application/json-patch+json', [
        { op: 'test', path: '/spec/domain/cpu/sockets', value: 2 },
        { op: 'replace', path: '/spec/domain/cpu/sockets', value: 3 },
      ]);
      const contradiction = /entries for 2 vCPUs, but the VM has 3/;
      const target = launcherOf('vm', uid, '1:2', { 'kubevirt.io/migrationJobUID': 'job' });
      await controller.create(PODS, target, DRY);
      await assert.rejects(controller.create(PODS, launcherOf('vm', uid, '1:2'), DRY), contradiction);
      await annotate(controller, `${VMIS}/vm`, { [MASK]: '1:2:3:4' });
      await assert.rejects(annotate(owner, `${VMIS}/vm`, { [MASK]: '1:2' }), contradiction);
    });
  });

  describe('while the webhook is down', () => {
    it('no VMI with a mask starts, and all others do', async () => {
      await installed.stopWebhook();
      for (const annotations of [{ [MASK]: '0' }, { [RECORD]: 'waiting' }]) {
        const created = owner.create(VMIS, vmiOf('late', annotations));
        await assert.rejects(created, /failed calling webhook "starts\.plumbline\.dev"/);
      }
      await owner.create(VMIS, vmiOf('late-plain', {}));
    });
  });
});
