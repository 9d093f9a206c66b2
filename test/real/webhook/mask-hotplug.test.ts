import assert from 'node:assert/strict';
import { createKubeClient, type KubeClient } from '../../../kube/client.ts';
import { kubeconfigAccess } from '../../../kube/kubeconfig.ts';
import { needs } from '../../support/parts.ts';
import type { KubernetesObject } from '../control-plane.ts';
import { type InstalledWebhook, installWebhook } from './installed.ts';

const MASK = 'plumbline.dev/cpu-mask';
const GROUP = 'rbac.authorization.k8s.io';
const API = '/apis/kubevirt.io/v1/namespaces/tenant';
const PODS = '/api/v1/namespaces/tenant/pods';
const MERGE = 'application/merge-patch+json';
const JSON_PATCH = 'application/json-patch+json';

/** virt-controller with its own account and the relevant part of its ClusterRole. */
const KUBEVIRT: KubernetesObject[] = [
  { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'tenant' } },
  { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'kubevirt' } },
  { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'kubevirt-controller', namespace: 'kubevirt' } },
  {
    apiVersion: `${GROUP}/v1`,
    kind: 'ClusterRole',
    metadata: { name: 'kubevirt-controller' },
    rules: [
      { apiGroups: ['kubevirt.io'], resources: ['*'], verbs: ['*'] },
      { apiGroups: [''], resources: ['pods'], verbs: ['*'] },
    ],
  },
  {
    apiVersion: `${GROUP}/v1`,
    kind: 'ClusterRoleBinding',
    metadata: { name: 'kubevirt-controller' },
    roleRef: { apiGroup: GROUP, kind: 'ClusterRole', name: 'kubevirt-controller' },
    subjects: [{ kind: 'ServiceAccount', name: 'kubevirt-controller', namespace: 'kubevirt' }],
  },
];

const specOf = (sockets: number) => ({ domain: { cpu: { sockets, cores: 1, threads: 1, maxSockets: 4 } } });

function launcherOf(uid: string, labels: Readonly<Record<string, string>>): KubernetesObject {
  const owner = { apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachineInstance', name: 'vm', uid, controller: true };
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: 'virt-launcher-vm-x',
      namespace: 'tenant',
      labels: { 'kubevirt.io': 'virt-launcher', ...labels },
      annotations: { [MASK]: '1:2' },
      ownerReferences: [owner],
    },
    spec: { containers: [{ name: 'compute', image: 'none', resources: { requests: { cpu: '300m' } } }] },
  } as KubernetesObject;
}

describe('CPU hotplug of a VM with a CPU mask behind a real API server', function () {
  needs('controlPlane');
  this.timeout(300_000);
  let installed: InstalledWebhook;
  let admin: KubeClient;
  let controller: KubeClient;
  let uid = '';
  before(async () => {
    installed = await installWebhook();
    const { plane } = installed;
    admin = plane.client;
    await plane.create(...KUBEVIRT);
    const token = await plane.serviceAccountToken('kubevirt', 'kubevirt-controller');
    controller = createKubeClient(kubeconfigAccess(await plane.kubeconfig('controller', token)), 'test');
    await admin.create(`${API}/virtualmachines`, {
      apiVersion: 'kubevirt.io/v1',
      kind: 'VirtualMachine',
      metadata: { name: 'vm' },
      spec: { template: { metadata: { annotations: { [MASK]: '1:2' } }, spec: specOf(2) } },
    });
    const made = (await controller.create(`${API}/virtualmachineinstances`, {
      apiVersion: 'kubevirt.io/v1',
      kind: 'VirtualMachineInstance',
      metadata: { name: 'vm', annotations: { [MASK]: '1:2' } },
      spec: specOf(2),
    })) as { metadata: { uid: string } };
    uid = made.metadata.uid;
  });
  after(async () => {
    await controller?.close();
    await installed?.stop();
  });

  const changeVm = (template: object) => admin.patch(`${API}/virtualmachines/vm`, MERGE, { spec: { template } });
  const patchVmi = (operations: readonly object[]) =>
    controller.patch(`${API}/virtualmachineinstances/vm`, JSON_PATCH, operations);
  const annotations = (mask: string) => ({ metadata: { annotations: { [MASK]: mask } } });

  it('users change vCPUs and mask together; either alone is refused', async () => {
    const refused = /entries for \d vCPUs, but the VM has \d/;
    await assert.rejects(changeVm({ spec: { domain: { cpu: { sockets: 3 } } } }), refused);
    await assert.rejects(changeVm(annotations('1:2:3')), refused);
    await changeVm({ ...annotations('1:2:3'), spec: { domain: { cpu: { sockets: 3 } } } });
  });

  it('KubeVirt plugs the vCPU in, and is refused nothing afterwards', async () => {
    // The requests of VMICPUsPatch and VMIAffinityPatch (pkg/virt-controller/watch/vm/vm.go).
    await patchVmi([
      { op: 'test', path: '/spec/domain/cpu/sockets', value: 2 },
      { op: 'replace', path: '/spec/domain/cpu/sockets', value: 3 },
    ]);
    await patchVmi([{ op: 'add', path: '/spec/affinity', value: { nodeAffinity: {} } }]);
    await patchVmi([{ op: 'add', path: '/spec/domain/memory', value: { guest: '2Gi' } }]);
  });

  it('the target of the VM’s migration is admitted, with the VMI’s mask', async () => {
    const dry = { query: { dryRun: 'All' } };
    await controller.create(PODS, launcherOf(uid, { 'kubevirt.io/migrationJobUID': 'job' }), dry);
    await assert.rejects(controller.create(PODS, launcherOf(uid, {}), dry), /entries for 2 vCPUs, but the VM has 3/);
  });

  it('KubeVirt may pass the new mask on to the VMI; users may not write one that does not match its vCPUs', async () => {
    const mask = `/metadata/annotations/${MASK.replace('/', '~1')}`;
    await patchVmi([{ op: 'replace', path: mask, value: '1:2:3:4' }]);
    const byUser = admin.patch(`${API}/virtualmachineinstances/vm`, MERGE, annotations('1:2'));
    await assert.rejects(byUser, /entries for 2 vCPUs, but the VM has 3/);
    await patchVmi([{ op: 'replace', path: mask, value: '1:2:3' }]);
  });
});
