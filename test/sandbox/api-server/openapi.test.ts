import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import type { KubeError } from '../../../kube/client.ts';
import type { Components } from '../../../sandbox/api-server/schema-check.ts';
import { type ControlPlane, startControlPlane } from '../../real/control-plane-stage.ts';
import { objectsOf, render } from '../../real/install/rendered-fixture.ts';
import { needs } from '../../support/parts.ts';
import { LEASES, MERGE, PODS, podOf, TOPOLOGIES, useApiServer, vmOf } from '../support.ts';
import { COMPONENTS, realComponents } from './openapi-stage.ts';

const components = JSON.parse(readFileSync(COMPONENTS, 'utf8')) as Components;

describe('the sandbox’s schemas', () => {
  needs('controlPlane');
  needs('kubevirt');

  it('are those of the real API server and of KubeVirt', async function () {
    this.timeout(300_000);
    assert.deepEqual(components, await realComponents());
  });
});

describe('unknown fields', () => {
  const suite = useApiServer({ components });
  const wrong = { ...podOf('web'), spec: { containers: [{ name: 'c', image: 'i', imge: 'j' }], nodeNam: 'x' } };

  it('are refused on the client’s request, each with its path', async () => {
    const { status, body } = await suite.call('POST', `${PODS}?fieldValidation=Strict`, wrong);
    assert.equal(status, 400);
    assert.equal(
      body.message,
      'Pod in version "v1" cannot be handled as a Pod: strict decoding error: unknown field "spec.containers[0].imge", unknown field "spec.nodeNam"',
    );
  });

  it('cause a warning or are accepted, depending on the request', async () => {
    const warned = await suite.call('POST', `${PODS}?fieldValidation=Warn&dryRun=All`, wrong);
    assert.equal(warned.status, 201);
    assert.match(String(warned.headers['warning']), /unknown field \\"spec\.nodeNam\\"/);
    const ignored = await suite.call('POST', `${PODS}?fieldValidation=Ignore&dryRun=All`, wrong);
    assert.deepEqual([ignored.status, ignored.headers['warning']], [201, undefined]);
    assert.equal((await suite.call('POST', `${PODS}?fieldValidation=Loud`, wrong)).status, 400);
  });

  it('are refused in patches, and in objects of KubeVirt and Plumbline', async () => {
    await suite.call('POST', PODS, podOf('web'));
    const sent = { spec: { nodeNam: 'x' } };
    const patch = await suite.call('PATCH', `${PODS}/web?fieldValidation=Strict`, sent, { type: MERGE });
    assert.equal(patch.status, 400);
    const vms = '/apis/kubevirt.io/v1/namespaces/default/virtualmachines?fieldValidation=Strict';
    const refused = await suite.call('POST', vms, vmOf({ coers: 4 }));
    assert.match(String(refused.body.message), /unknown field "spec\.template\.spec\.domain\.cpu\.coers"$/);
    assert.equal((await suite.call('POST', vms, vmOf({ cores: 4 }))).status, 201);
    const topology = { metadata: { name: 'n' }, status: { cels: [] } };
    assert.equal((await suite.call('POST', `${TOPOLOGIES}?fieldValidation=Strict`, topology)).status, 400);
  });
});

const podWith = (container: object) => ({
  ...podOf('wrong'),
  spec: { containers: [{ name: 'c', image: 'i', ...container }] },
});
const TOPOLOGY = { apiVersion: 'plumbline.dev/v1alpha1', kind: 'NodeTopology', metadata: { name: 'wrong' } };
const STATUS = `${TOPOLOGIES}/wrong/status`;
const report = { cores: ['0'], reserved: '', cpuManager: { policy: 'none' }, assignments: [] };
const lease = { metadata: { name: 'wrong' }, spec: { leaseDurationSeconds: '40' } };
const withCell = (cell: object) => ({ status: { ...report, cells: [cell] } });

/** Wrong types: the sandbox refuses them as a real API server does. A status is patched, anything else created. */
const WRONG: readonly (readonly [what: string, path: string, object: object, status: number, message: RegExp])[] = [
  ['a text as a list', PODS, podWith({ args: 'x' }), 400, /cannot unmarshal string into Go struct field .*args/],
  ['a number as a text', PODS, podWith({ image: 5 }), 400, /Go struct field .*image of type string/],
  ['a text as a number', LEASES, lease, 400, /Go struct field .*leaseDurationSeconds of type int/],
  [
    'a text as a number of a custom resource',
    STATUS,
    withCell({ id: 'x', cpus: '0' }),
    422,
    /cells\[0\]\.id in body must be of type integer/,
  ],
  [
    'a missing field of a custom resource',
    STATUS,
    withCell({ id: 0 }),
    422,
    /status\.cells\[0\]\.cpus: Required value/,
  ],
];

describe('types of fields', () => {
  const suite = useApiServer({ components });
  before(() => suite.call('POST', TOPOLOGIES, TOPOLOGY));
  for (const [what, path, object, status, message] of WRONG) {
    it(`${what}: ${status}`, async () => {
      const [method, options] = path === STATUS ? ['PATCH', { type: MERGE }] : ['POST', {}];
      const answer = await suite.call(method, path, object, options);
      assert.equal(answer.status, status, answer.body.message);
      assert.match(answer.body.message ?? '', message);
    });
  }

  it('a number is a quantity, and null is absent', async () => {
    const { status } = await suite.call('POST', PODS, podWith({ args: null, resources: { limits: { cpu: 2 } } }));
    assert.equal(status, 201);
  });

  describe('of a real API server', function () {
    needs('controlPlane');
    needs('kubectl');
    this.timeout(120_000);
    let plane: ControlPlane | undefined;
    before(async () => {
      plane = await startControlPlane();
      await plane.create(...objectsOf(render('base/crd')), TOPOLOGY);
    });
    after(() => plane?.stop());
    for (const [what, path, object, status, message] of WRONG) {
      it(`${what}: ${status}`, async () => {
        const { client } = plane!;
        const written = path === STATUS ? client.patch(path, MERGE, object) : client.create(path, object);
        await assert.rejects(written, (error: KubeError) => {
          assert.equal(error.status, status);
          assert.match(error.message, message);
          return true;
        });
      });
    }
  });
});
