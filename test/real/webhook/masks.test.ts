import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { stringify } from 'yaml';
import { createKubeClient, type KubeClient } from '../../../kube/client.ts';
import { kubeconfigAccess } from '../../../kube/kubeconfig.ts';
import { deniedByPolicy } from '../../support/denied.ts';
import { needs, pathOf } from '../../support/parts.ts';
import type { KubernetesObject } from '../control-plane.ts';
import { type InstalledWebhook, installWebhook } from './installed.ts';

const MASK = 'plumbline.dev/cpu-mask';
const RECORD = 'plumbline.dev/paused-start';
const RECORD_POLICY = deniedByPolicy('plumbline-paused-start');
const GROUP = 'rbac.authorization.k8s.io';
const VMIS = '/apis/kubevirt.io/v1/namespaces/tenant/virtualmachineinstances';
const MERGE = 'application/merge-patch+json';

interface StoredVmi {
  readonly metadata: { readonly uid: string; readonly annotations?: Readonly<Record<string, string>> };
  readonly spec: { readonly startStrategy?: string };
}

/** Two tenants: one has all permissions in the namespace, including masks; the other has only VMs and pods. */
const TENANTS: KubernetesObject[] = [
  { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'tenant' } },
  binding('owner', 'cluster-admin'),
  {
    apiVersion: `${GROUP}/v1`,
    kind: 'ClusterRole',
    metadata: { name: 'vms-and-pods' },
    rules: [
      { apiGroups: ['kubevirt.io'], resources: ['*'], verbs: ['*'] },
      { apiGroups: [''], resources: ['pods'], verbs: ['*'] },
    ],
  },
  binding('guest', 'vms-and-pods'),
];

function binding(user: string, role: string): KubernetesObject {
  return {
    apiVersion: `${GROUP}/v1`,
    kind: 'RoleBinding',
    metadata: { name: user, namespace: 'tenant' },
    roleRef: { apiGroup: GROUP, kind: 'ClusterRole', name: role },
    subjects: [{ apiGroup: GROUP, kind: 'User', name: user }],
  };
}

const vmiOf = (name: string, annotations: Record<string, string>, spec: object = {}): KubernetesObject => ({
  apiVersion: 'kubevirt.io/v1',
  kind: 'VirtualMachineInstance',
  metadata: { name, namespace: 'tenant', annotations },
  spec: { domain: { cpu: { cores: 2 } }, ...spec },
});

describe('CPU masks behind a real API server', function () {
  needs('controlPlane');
  this.timeout(300_000);
  let installed: InstalledWebhook;
  let client: KubeClient;
  let extender: KubeClient;
  before(async () => {
    installed = await installWebhook();
    const { plane } = installed;
    client = plane.client;
    await plane.create(...TENANTS);
    const token = await plane.serviceAccountToken('plumbline-system', 'plumbline-scheduler');
    extender = createKubeClient(kubeconfigAccess(await plane.kubeconfig('extender', token)), 'test');
  });
  after(async () => {
    await extender?.close();
    await installed?.stop();
  });

  /** The webhook runs in this process, so it must not be blocked. */
  const kubectl = (user: string, args: readonly string[], input?: object) =>
    new Promise<{ status: number | null; stderr: string }>((resolve) => {
      const flags = [
        '--kubeconfig',
        installed.plane.adminKubeconfig,
        '--as',
        user,
        '--as-group',
        'system:authenticated',
      ];
      const child = spawn(pathOf('kubectl'), [...flags, ...args], { stdio: ['pipe', 'ignore', 'pipe'] });
      let stderr = '';
      child.stderr.setEncoding('utf8').on('data', (text: string) => {
        stderr += text;
      });
      child.on('close', (status) => resolve({ status, stderr }));
      child.stdin.end(input === undefined ? '' : stringify(input));
    });
  /** kubectl's own validation needs the OpenAPI document, which an API server with new types may not have yet. */
  const create = (user: string, object: object) => kubectl(user, ['create', '--validate=false', '-f', '-'], object);
  const annotate = (user: string, name: string, value: string) =>
    kubectl(user, ['-n', 'tenant', 'annotate', '--overwrite', `virtualmachineinstances/${name}`, value]);
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
      ['probed', { [MASK]: '0:1' }, { livenessProbe: { tcpSocket: { port: 22 } } }, [undefined, undefined]],
      ['forged', { [RECORD]: 'waiting' }, { startStrategy: 'Paused' }, ['Paused', undefined]],
      ['forged-masked', { [MASK]: '0', [RECORD]: 'waiting' }, { startStrategy: 'Paused' }, ['Paused', undefined]],
    ];
    for (const [name, annotations, spec, start] of cases) {
      it(`${name}: ${start.filter(Boolean).join(', ') || 'as it is'}`, async () => {
        const { status, stderr } = await create('owner', vmiOf(name, annotations, spec));
        assert.equal(status, 0, stderr);
        assert.deepEqual(await startOf(name), start);
      });
    }
  });

  describe('its record', () => {
    it('cannot be written, changed or removed by any user of the namespace', async () => {
      assert.equal((await create('owner', vmiOf('kept', { [MASK]: '0:1' }))).status, 0);
      for (const value of [`${RECORD}=resumed`, `${RECORD}-`]) {
        const { status, stderr } = await annotate('owner', 'kept', value);
        assert.equal(status, 1);
        assert.match(stderr, RECORD_POLICY);
      }
      assert.equal((await create('owner', vmiOf('never', {}))).status, 0);
      assert.match((await annotate('owner', 'never', `${RECORD}=waiting`)).stderr, RECORD_POLICY);
      assert.deepEqual(await startOf('kept'), ['Paused', 'waiting']);
      assert.equal((await annotate('owner', 'kept', 'note=mine')).status, 0, 'everything else works');
    });

    it('is written by the extender, which may write nothing else there', async () => {
      assert.equal((await create('owner', vmiOf('extended', { [MASK]: '0:1' }))).status, 0);
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
    const launcher = (vmi: StoredVmi | undefined, name: string, mask: string) => ({
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: {
        generateName: 'virt-launcher-',
        namespace: 'tenant',
        labels: { 'kubevirt.io': 'virt-launcher' },
        annotations: { [MASK]: mask },
        ownerReferences: [
          {
            apiVersion: 'kubevirt.io/v1',
            kind: 'VirtualMachineInstance',
            name,
            uid: vmi?.metadata.uid ?? 'none',
            controller: true,
          },
        ],
      },
      spec: { containers: [{ name: 'compute', image: 'none', resources: { requests: { cpu: '200m' } } }] },
    });

    it('takes a permission in the namespace, for the launcher, too, which the agent reads', async () => {
      const refusal = /user guest may not use CPU masks in namespace tenant/;
      assert.match((await create('guest', vmiOf('asked', { [MASK]: '0' }))).stderr, refusal);
      const vmi = (await client.create(VMIS, vmiOf('guests', {}))) as StoredVmi;
      assert.match((await create('guest', launcher(vmi, 'guests', '0'))).stderr, refusal);
      const { generateName: _, annotations: __, ...metadata } = launcher(vmi, 'guests', '').metadata;
      const bare = { ...launcher(vmi, 'guests', ''), metadata: { ...metadata, name: 'bare' } };
      assert.equal((await create('guest', bare)).status, 0);
      const put = ['-n', 'tenant', 'annotate', 'pods/bare', `${MASK}=0`];
      assert.match((await kubectl('guest', put)).stderr, refusal);
      await kubectl('owner', put);
      assert.equal((await kubectl('guest', ['-n', 'tenant', 'annotate', 'pods/bare', 'note=mine'])).status, 0);
    });

    it('is refused at the VMI together with dedicated CPUs, with the reason', async () => {
      const dedicated = { domain: { cpu: { cores: 2, dedicatedCpuPlacement: true } } };
      const { stderr } = await create('owner', vmiOf('both', { [MASK]: '0-1' }, dedicated));
      assert.match(stderr, /dedicatedCpuPlacement are mutually exclusive: KubeVirt pins dedicated CPUs/);
    });

    it('is checked again at the launcher against the current VMI', async () => {
      const vmi = (await client.create(VMIS, vmiOf('launched', { [MASK]: '0:1' }))) as StoredVmi;
      const pods = '/api/v1/namespaces/tenant/pods';
      const dry = { query: { dryRun: 'All' } };
      await client.create(pods, launcher(vmi, 'launched', '0:1'), dry);
      await assert.rejects(
        client.create(pods, launcher(vmi, 'launched', '0:1:2'), dry),
        /entries for 3 vCPUs, but the VM has 2/,
      );
      await assert.rejects(
        client.create(pods, launcher(vmi, 'launched', '1:'), dry),
        /entry 2 \(for vCPU 1\) is empty/,
      );
    });
  });

  describe('while the webhook is down', () => {
    it('no VMI with a mask starts, and all others do', async () => {
      await installed.stopWebhook();
      const away = await create('owner', vmiOf('late', { [MASK]: '0' }));
      assert.match(away.stderr, /failed calling webhook "starts\.plumbline\.dev"/);
      const forged = await create('owner', vmiOf('late-forged', { [RECORD]: 'waiting' }));
      assert.match(forged.stderr, /failed calling webhook "starts\.plumbline\.dev"/);
      const plain = await create('owner', vmiOf('late-plain', {}));
      assert.equal(plain.status, 0, plain.stderr);
    });
  });
});
