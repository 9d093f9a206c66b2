import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import type { KubeError } from '../../../kube/client.ts';
import type { Components } from '../../../sandbox/api-server/schema-check.ts';
import { type ControlPlane, startControlPlane } from '../../real/control-plane.ts';
import { objectsOf, render } from '../../real/install/rendered.ts';
import { needs } from '../../support/parts.ts';
import { podOf, useApiServer } from '../support.ts';
import { COMPONENTS, realComponents } from './real-components.ts';

const components = JSON.parse(readFileSync(COMPONENTS, 'utf8')) as Components;

const vm = (cpu: object) => ({
  apiVersion: 'kubevirt.io/v1',
  kind: 'VirtualMachine',
  metadata: { name: 'router', namespace: 'default' },
  spec: { runStrategy: 'Halted', template: { spec: { domain: { cpu, devices: {} } } } },
});

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
  const pods = '/api/v1/namespaces/default/pods';
  const wrong = { ...podOf('web'), spec: { containers: [{ name: 'c', image: 'i', imge: 'j' }], nodeNam: 'x' } };

  it('are refused on the client’s request, each with its path', async () => {
    const { status, body } = await suite.call('POST', `${pods}?fieldValidation=Strict`, wrong);
    assert.equal(status, 400);
    assert.equal(
      body.message,
      'Pod in version "v1" cannot be handled as a Pod: strict decoding error: unknown field "spec.containers[0].imge", unknown field "spec.nodeNam"',
    );
  });

  it('cause a warning or are accepted, depending on the request', async () => {
    const warned = await suite.call('POST', `${pods}?fieldValidation=Warn&dryRun=All`, wrong);
    assert.equal(warned.status, 201);
    assert.match(String(warned.headers['warning']), /unknown field \\"spec\.nodeNam\\"/);
    const ignored = await suite.call('POST', `${pods}?fieldValidation=Ignore&dryRun=All`, wrong);
    assert.deepEqual([ignored.status, ignored.headers['warning']], [201, undefined]);
    assert.equal((await suite.call('POST', `${pods}?fieldValidation=Loud`, wrong)).status, 400);
  });

  it('are refused in patches, and in objects of KubeVirt and Plumbline', async () => {
    await suite.call('POST', pods, podOf('web'));
    const merge = { type: 'application/merge-patch+json' };
    const patch = await suite.call('PATCH', `${pods}/web?fieldValidation=Strict`, { spec: { nodeNam: 'x' } }, merge);
    assert.equal(patch.status, 400);
    const vms = '/apis/kubevirt.io/v1/namespaces/default/virtualmachines?fieldValidation=Strict';
    const refused = await suite.call('POST', vms, vm({ coers: 4 }));
    assert.match(String(refused.body.message), /unknown field "spec\.template\.spec\.domain\.cpu\.coers"$/);
    assert.equal((await suite.call('POST', vms, vm({ cores: 4 }))).status, 201);
    const topologies = '/apis/plumbline.dev/v1alpha1/nodetopologies?fieldValidation=Strict';
    const topology = { metadata: { name: 'n' }, status: { cels: [] } };
    assert.equal((await suite.call('POST', topologies, topology)).status, 400);
  });
});

interface WrongObject {
  readonly what: string;
  readonly path: string;
  readonly object: object;
  /** Default: it is created. */
  readonly method?: 'PATCH';
  readonly status: number;
  readonly message: RegExp;
}

const PODS = '/api/v1/namespaces/default/pods';
const TOPOLOGIES = '/apis/plumbline.dev/v1alpha1/nodetopologies';
const LEASES = '/apis/coordination.k8s.io/v1/namespaces/default/leases';
const VMS = '/apis/kubevirt.io/v1/namespaces/default/virtualmachines';
const podWith = (container: object) => ({
  ...podOf('wrong'),
  spec: { containers: [{ name: 'c', image: 'i', ...container }] },
});
const TOPOLOGY = { apiVersion: 'plumbline.dev/v1alpha1', kind: 'NodeTopology', metadata: { name: 'wrong' } };
const MERGE = 'application/merge-patch+json';
const report = {
  cells: [{ id: 0, cpus: '0' }],
  cores: ['0'],
  reserved: '',
  cpuManager: { policy: 'none' },
  assignments: [],
};

/** Wrong types: the sandbox refuses them as a real API server does, with the status and the field. */
const WRONG: readonly WrongObject[] = [
  {
    what: 'a text as a list',
    path: PODS,
    object: podWith({ args: 'x' }),
    status: 400,
    message: /cannot be handled as a Pod: json: cannot unmarshal string into Go struct field .*args of type/,
  },
  {
    what: 'a number as a text',
    path: PODS,
    object: podWith({ image: 5 }),
    status: 400,
    message: /json: cannot unmarshal (?:number|integer) into Go struct field .*image of type string/,
  },
  {
    what: 'a truth value as a quantity',
    path: PODS,
    object: podWith({ resources: { limits: { cpu: true } } }),
    status: 400,
    message: /cannot be handled as a Pod/,
  },
  {
    what: 'a text as a number',
    path: LEASES,
    object: { metadata: { name: 'wrong' }, spec: { leaseDurationSeconds: '40' } },
    status: 400,
    message: /json: cannot unmarshal string into Go struct field .*leaseDurationSeconds of type int/,
  },
  {
    what: 'a text as a number of a custom resource',
    path: `${TOPOLOGIES}/wrong/status`,
    method: 'PATCH',
    object: { status: { ...report, cells: [{ id: 'x', cpus: '0' }] } },
    status: 422,
    message: /status\.cells\[0\]\.id: Invalid value: "string": .*cells\[0\]\.id in body must be of type integer/,
  },
  {
    what: 'a missing field of a custom resource',
    path: `${TOPOLOGIES}/wrong/status`,
    method: 'PATCH',
    object: { status: { ...report, cells: [{ id: 0 }] } },
    status: 422,
    message: /status\.cells\[0\]\.cpus: Required value/,
  },
];

describe('types of fields', () => {
  const suite = useApiServer({ components });
  const vmRow: WrongObject = {
    what: 'a text as the number of a VM’s cores',
    path: VMS,
    object: vm({ cores: 'four' }),
    status: 422,
    message: /spec\.template\.spec\.domain\.cpu\.cores: Invalid value: "string": .* must be of type integer/,
  };
  before(() => suite.call('POST', TOPOLOGIES, TOPOLOGY));
  for (const { what, path, object, method = 'POST', status, message } of [...WRONG, vmRow]) {
    it(`${what}: ${status}`, async () => {
      const answer = await suite.call(method, path, object, method === 'PATCH' ? { type: MERGE } : {});
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
    this.timeout(120_000);
    let plane: ControlPlane;
    before(async () => {
      plane = await startControlPlane();
      await plane.create(...objectsOf(render('base/crd')), TOPOLOGY);
    });
    after(() => plane.stop());
    for (const { what, path, object, method, status, message } of WRONG) {
      it(`${what}: ${status}`, async () => {
        const { client } = plane;
        const written = method === 'PATCH' ? client.patch(path, MERGE, object) : client.create(path, object);
        await assert.rejects(written, (error: KubeError) => {
          assert.equal(error.status, status);
          assert.match(error.message, message);
          return true;
        });
      });
    }
  });
});
