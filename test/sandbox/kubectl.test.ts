import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { kubeconfig } from '../../sandbox/cluster/identities.ts';
import { needs, pathOf } from '../support/parts.ts';
import { until } from '../support/until.ts';
import { TOKEN, temporaryDirectory, useApiServer } from './support.ts';

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
  const suite = useApiServer();
  let directory: { path: string; remove: () => Promise<void> };
  const kubectl = async (...args: string[]) => {
    const common = ['--kubeconfig', join(directory.path, 'config'), '--cache-dir', join(directory.path, 'cache')];
    return (await promisify(execFile)(pathOf('kubectl'), [...common, ...args])).stdout;
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
  it('apply refuses what the server refuses', async () => {
    await assert.rejects(apply(MANIFEST.replace('cpu: "2"', 'cpu: "3"')), /pod updates may not change fields/);
  });
  it('get prints the columns', async () => {
    assert.match(await kubectl('get', 'pods'), /^NAME +READY +STATUS +RESTARTS +AGE\nweb +0\/1 +Pending +0 +\d+s\n$/);
    assert.match(
      await kubectl('get', 'nodetopologies'),
      /^NAME +CPUS +FREE +NETWORKS +POLICY +TOPOLOGY +KNOWN +LAST-REPORT +AGE/,
    );
    assert.match(await kubectl('get', 'po,ns', '-A'), /namespace\/kube-system +Active/);
  });
  it('describe, label, annotate, delete', async () => {
    assert.match(await kubectl('describe', 'pod', 'web'), /QoS Class: +Guaranteed/);
    assert.match(await kubectl('label', 'pod', 'web', 'x=y'), /labeled/);
    assert.match(await kubectl('annotate', 'nodetopology', 'worker-0', 'x=y'), /annotated/);
    assert.match(await kubectl('delete', 'pod', 'web'), /deleted/);
    await assert.rejects(kubectl('get', 'pod', 'web'), /pods "web" not found/);
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
});
