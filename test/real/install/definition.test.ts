import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { isNotFound, type KubeError } from '../../../kube/client.ts';
import { NODE_TOPOLOGIES, SCHEMAS, type Schema } from '../../manifests/definition-fixture.ts';
import { root } from '../../support/bundles.ts';
import { until } from '../../support/until.ts';
import { type ControlPlane, onControlPlane, startControlPlane } from '../control-plane-stage.ts';
import { objectsOf, render } from './rendered-fixture.ts';

const run = promisify(execFile);
const TOPOLOGIES = '/apis/plumbline.dev/v1alpha1/nodetopologies';
const MERGE = 'application/merge-patch+json';
const [SCHEMA] = SCHEMAS as [Schema];
const STATUS = SCHEMA.properties!['status']!;

type Json = Readonly<Record<string, unknown>>;

function smallest({ type, ...schema }: Schema): unknown {
  if (type === 'string') return schema.enum?.[0] ?? (schema.format === 'date-time' ? '2026-01-01T00:00:00Z' : 'x');
  if (type === 'integer') return schema.minimum ?? 0;
  if (type === 'boolean') return false;
  if (type === 'array') return [];
  const required = (schema.required ?? []).map((name) => [name, smallest(schema.properties![name]!)]);
  return Object.fromEntries(required);
}

describe('the definition of NodeTopology on a real API server', function () {
  onControlPlane(this);
  let plane: ControlPlane;

  before(async () => {
    plane = await startControlPlane();
    await plane.create(...objectsOf(render('base/crd')));
    await plane.create({ apiVersion: 'plumbline.dev/v1alpha1', kind: 'NodeTopology', metadata: { name: 'worker' } });
  });
  after(() => plane?.stop());

  const write = (status: unknown) =>
    plane.client.patch(`${TOPOLOGIES}/worker/status`, MERGE, { status }, { query: { dryRun: 'All' } }).then(
      () => '',
      (error: KubeError) => {
        if (error.status !== 422) throw error;
        return error.message;
      },
    );

  it('refuses names that are too long and texts whose total length is too large', async () => {
    const name = 'x'.repeat(65);
    assert.match(await write({ ...(smallest(STATUS) as Json), distances: { [name]: [10] } }), /longer than 64/);
    const groups = Array.from({ length: 17 }, (_, id) => ({ id, cpus: '0'.repeat(4096) }));
    assert.match(await write({ ...(smallest(STATUS) as Json), sockets: groups }), /longer than 65536/);
  });

  it('a second version, as docs/reference/versions.md describes it, keeps every report, and the page’s commands store it alone', async () => {
    const DEFINITION = `/apis/apiextensions.k8s.io/v1/customresourcedefinitions/${NODE_TOPOLOGIES.metadata.name}`;
    const BETA = '/apis/plumbline.dev/v1beta1/nodetopologies';
    const statusOf = async (path: string) => ((await plane.client.get(`${path}/worker`)) as { status: Json }).status;
    const report = (path: string, status: Json) => plane.client.patch(`${path}/worker/status`, MERGE, { status });
    const storedVersions = async () =>
      ((await plane.client.get(DEFINITION)) as { status: { storedVersions: string[] } }).status.storedVersions;
    const [alpha] = NODE_TOPOLOGIES.spec.versions;
    const beta = structuredClone(alpha) as unknown as { schema: { openAPIV3Schema: { properties: Json } } };
    const { properties } = beta.schema.openAPIV3Schema.properties['status'] as { properties: Record<string, object> };
    properties['added'] = { type: 'string', maxLength: 64 };
    const define = (...versions: readonly object[]) =>
      plane.client.patch(DEFINITION, MERGE, { spec: { versions, conversion: { strategy: 'None' } } });

    const status = { ...(smallest(STATUS) as Json), reserved: '0,8' };
    await report(TOPOLOGIES, status);
    const newVersion = { ...beta, name: 'v1beta1', storage: true };
    await define({ ...alpha, storage: false }, newVersion);
    await until('both versions to be served', async () => (await statusOf(BETA)) !== undefined);
    // The API server prunes by the version that it stored before until it has seen the new definition.
    await until('the API server to keep the new field', async () => {
      await report(BETA, { added: 'x' });
      return (await statusOf(BETA))['added'] === 'x';
    });
    assert.deepEqual(await statusOf(BETA), { ...status, added: 'x' });
    assert.deepEqual(await statusOf(TOPOLOGIES), status);
    await report(TOPOLOGIES, { reserved: '0' });
    assert.deepEqual(await statusOf(BETA), { ...status, reserved: '0' }, 'written in the old version');
    assert.deepEqual(await storedVersions(), ['v1alpha1', 'v1beta1']);

    const page = readFileSync(join(root, 'docs/reference/versions.md'), 'utf8');
    const [, commands = 'exit 1'] = /```sh\n(kubectl get nodetopologies[\s\S]*?)```/.exec(page) ?? [];
    await run('sh', ['-ec', commands], { env: { ...process.env, KUBECONFIG: plane.adminKubeconfig } });
    assert.deepEqual(await storedVersions(), ['v1beta1']);
    await define(newVersion);
    await until('v1alpha1 to be gone', () => statusOf(TOPOLOGIES).then(() => false, isNotFound));
    // What it reads now comes out of the store.
    await plane.apiServer.stop();
    await plane.restartApiServer();
    assert.deepEqual(await statusOf(BETA), { ...status, reserved: '0' });
  });
});
