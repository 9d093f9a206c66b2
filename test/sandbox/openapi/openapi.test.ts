import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Components } from '../../../sandbox/api-server/openapi.ts';
import { kubeconfig } from '../../../sandbox/cluster/identities.ts';
import { needs, pathOf } from '../../support/parts.ts';
import { podOf, TOKEN, temporaryDirectory, useApiServer } from '../support.ts';
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

describe('plain kubectl with the sandbox', () => {
  const suite = useApiServer({ components });
  let directory: { path: string; remove: () => Promise<void> };
  const kubectl = async (...args: string[]) => {
    const common = ['--kubeconfig', join(directory.path, 'config'), '--cache-dir', join(directory.path, 'cache')];
    return (await promisify(execFile)(pathOf('kubectl'), [...common, ...args])).stdout;
  };
  const file = async (object: object) => {
    const path = join(directory.path, 'object.json');
    await writeFile(path, JSON.stringify(object));
    return path;
  };
  needs('kubectl');
  before(async () => {
    directory = await temporaryDirectory();
    const { url: server, ca } = suite.server;
    await writeFile(join(directory.path, 'config'), kubeconfig({ server, ca, token: TOKEN }));
  });
  after(() => directory.remove());

  it('apply works without a flag', async () => {
    assert.match(await kubectl('apply', '-f', await file(vm({ cores: 4 }))), /router created/);
    assert.match(await kubectl('apply', '-f', await file(vm({ cores: 8 }))), /router configured/);
    assert.match(await kubectl('apply', '--server-side', '-f', await file(podOf('web'))), /web serverside-applied/);
  });

  it('apply keeps list items of others by their merge key', async () => {
    const pod = podOf('merged');
    await kubectl('apply', '-f', await file(pod));
    await kubectl('patch', 'pod', 'merged', '-p', '{"spec":{"tolerations":[{"key":"a","operator":"Exists"}]}}');
    assert.match(
      await kubectl('apply', '-f', await file({ ...pod, metadata: { ...pod.metadata, labels: { x: 'y' } } })),
      /configured/,
    );
    assert.equal(await kubectl('get', 'pod', 'merged', '-o', 'jsonpath={.spec.tolerations[0].key}'), 'a');
  });

  it('apply refuses an unknown field', async () => {
    await assert.rejects(
      kubectl('apply', '-f', await file(vm({ coers: 4 }))),
      /strict decoding error: unknown field "spec\.template\.spec\.domain\.cpu\.coers"/,
    );
  });

  it('explain works', async () => {
    assert.match(await kubectl('explain', 'pod.spec.containers.resources'), /limits\s+<map\[string\]Quantity>/);
    assert.match(await kubectl('explain', 'vm.spec.template.spec.domain.cpu'), /dedicatedCpuPlacement\s+<boolean>/);
    assert.match(await kubectl('explain', 'ntopo.status.cells'), /cpus\s+<string> -required-/);
  });

  it('the short names of the real definitions work', async () => {
    for (const name of ['vm', 'vms', 'vmi', 'vmis', 'ntopo', 'net-attach-def', 'po', 'no', 'cm']) {
      await kubectl('get', name);
    }
  });
});
