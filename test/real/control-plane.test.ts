import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import { isNotFound } from '../../kube/client.ts';
import { root } from '../support/bundles.ts';
import { needs, pathOf } from '../support/parts.ts';
import { type ControlPlane, type KubernetesObject, startControlPlane } from './control-plane.ts';

/** Kinds that other products bring; a cluster without cert-manager has no definition of them. */
const FOREIGN = ['Certificate', 'Issuer'];

describe('a real API server', function () {
  needs('controlPlane');
  this.timeout(300_000);
  let plane: ControlPlane;
  before(async function () {
    plane = await startControlPlane();
    console.log(`    ${plane.version}`);
    this.timeout(300_000);
  });
  after(() => plane?.stop());

  it('accepts every object of the base', async () => {
    const kubectl = pathOf('kubectl');
    const yaml = execFileSync(kubectl, ['kustomize', join(root, 'manifests/base')], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    const objects = parseAllDocuments(yaml).map((document) => document.toJS() as KubernetesObject);
    await plane.create(...objects.filter(({ kind }) => !FOREIGN.includes(kind)));
  });

  it('accepts a report, refuses one that the schema does not allow, and keeps spec and status separate', async () => {
    const path = '/apis/plumbline.dev/v1alpha1/nodetopologies';
    const report = { apiVersion: 'plumbline.dev/v1alpha1', kind: 'NodeTopology', metadata: { name: 'worker-0' } };
    const status = {
      cells: [{ id: 0, cpus: '0-3' }],
      cores: ['0,2', '1,3'],
      reserved: '0',
      cpuManager: { policy: 'static', options: { 'full-pcpus-only': 'true' } },
      assignments: [],
    };
    const created = (await plane.client.create(path, { ...report, status })) as { status?: unknown };
    assert.equal(created.status, undefined, 'a status in the main resource is dropped');
    const merge = 'application/merge-patch+json';
    await assert.rejects(
      plane.client.patch(`${path}/worker-0/status`, merge, { status: { ...status, reserved: 7 } }),
      /status\.reserved/,
    );
    await plane.client.patch(`${path}/worker-0/status`, merge, { status });
    const read = (await plane.client.get(`${path}/worker-0`)) as { status: unknown };
    assert.deepEqual(read.status, status);
  });

  it('issues service account tokens that name the node of their pod', async () => {
    const namespace = 'plumbline-system';
    await plane.create(
      { apiVersion: 'v1', kind: 'Node', metadata: { name: 'worker-0' } },
      {
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: { name: 'agent', namespace },
        spec: {
          nodeName: 'worker-0',
          serviceAccountName: 'plumbline-node-agent',
          containers: [{ name: 'c', image: 'none' }],
        },
      },
    );
    const pod = (await plane.client.get(`/api/v1/namespaces/${namespace}/pods/agent`)) as { metadata: { uid: string } };
    const token = await plane.serviceAccountToken(namespace, 'plumbline-node-agent', {
      name: 'agent',
      uid: pod.metadata.uid,
    });
    const claims = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString()) as {
      'kubernetes.io': { node?: { name: string } };
    };
    assert.equal(claims['kubernetes.io'].node?.name, 'worker-0');
    await assert.rejects(plane.client.get('/api/v1/nodes/worker-1'), isNotFound);
  });
});
