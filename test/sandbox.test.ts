import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Components } from '../sandbox/api-server/schema-check.ts';
import { kubeconfig } from '../sandbox/cluster/identities.ts';
import { COMPONENTS } from './sandbox/api-server/openapi-stage.ts';
import { podOf, TOKEN, temporaryDirectory, useApiServer, vmOf } from './sandbox/support.ts';
import { needs, pathOf } from './support/parts.ts';
import { until } from './support/until.ts';

const components = JSON.parse(readFileSync(COMPONENTS, 'utf8')) as Components;

const MANIFEST = `
apiVersion: v1
kind: Pod
metadata: {name: web, labels: {app: one}}
spec: {containers: [{name: c, image: i, resources: {limits: {cpu: "2", memory: 1Gi}}}]}
---
apiVersion: plumbline.dev/v1alpha1
kind: NodeTopology
metadata: {name: worker-0}
`;

describe('kubectl with the sandbox', () => {
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
  const apply = async (text: string) => {
    const file = join(directory.path, 'manifest.yaml');
    await writeFile(file, text);
    return kubectl('apply', '-f', file);
  };

  before(async () => {
    directory = await temporaryDirectory();
    const { url: server, ca } = suite.server;
    await writeFile(join(directory.path, 'config'), kubeconfig({ server, ca, token: TOKEN }));
  });
  needs('kubectl');
  after(() => directory.remove());

  it('apply creates and changes objects, and keeps unchanged ones', async () => {
    assert.match(await apply(MANIFEST), /pod\/web created\nnodetopology.plumbline.dev\/worker-0 created/);
    assert.match(await apply(MANIFEST), /pod\/web unchanged/);
    assert.match(await apply(MANIFEST.replace('one', 'two')), /pod\/web configured/);
    assert.equal(await kubectl('get', 'pod', 'web', '-o', 'jsonpath={.metadata.labels.app}'), 'two');
  });
  it('get prints the columns', async () => {
    assert.match(await kubectl('get', 'pods'), /^NAME +READY +STATUS +RESTARTS +AGE\nweb +0\/1 +Pending +0 +\d+s\n$/);
    assert.match(
      await kubectl('get', 'nodetopologies'),
      /^NAME +CPUS +FREE +NETWORKS +POLICY +TOPOLOGY +KNOWN +LAST-REPORT +AGE/,
    );
    assert.match(await kubectl('get', 'po,ns', '-A'), /namespace\/kube-system +Active/);
  });
  it('get -w follows changes', async () => {
    const args = ['--kubeconfig', join(directory.path, 'config'), 'get', 'configmaps', '-w', '-o', 'name'];
    const child = spawn(pathOf('kubectl'), args);
    let seen = '';
    child.stdout.on('data', (chunk: Buffer) => {
      seen += chunk.toString();
    });
    await until('kubectl watches', async () => {
      await suite.call('POST', '/api/v1/namespaces/default/configmaps', { metadata: { generateName: 'w-' } });
      return seen.includes('configmap/w-');
    });
    child.kill();
  });

  it('apply creates and changes objects of KubeVirt, also on the server', async () => {
    assert.match(await kubectl('apply', '-f', await file(vmOf({ cores: 4 }))), /router created/);
    assert.match(await kubectl('apply', '-f', await file(vmOf({ cores: 8 }))), /router configured/);
    assert.match(
      await kubectl('apply', '--server-side', '-f', await file(podOf('served'))),
      /served serverside-applied/,
    );
  });

  it('the short names of the real definitions work', async () => {
    for (const name of ['vm', 'vms', 'vmi', 'vmis', 'ntopo', 'net-attach-def', 'po', 'no', 'cm']) {
      await kubectl('get', name);
    }
  });
});
