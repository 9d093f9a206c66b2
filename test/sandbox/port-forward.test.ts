import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { KubeConfig } from '@kubernetes/client-node';
import { forwardFailure, getFromPod } from '../../cli/extender/port-forward.ts';
import { kubeconfig } from '../../sandbox/cluster/identities.ts';
import { type Listener, listen, podOf, TOKEN, useApiServer } from './support.ts';

describe('sandbox API server: what reaches a kubelet', () => {
  let listener: Listener;
  const suite = useApiServer({
    localPort: (pod, port) => (pod.metadata.name === 'web' && port === 80 ? listener.port : undefined),
    configz: (node) => (node === 'n1' ? { kubeletconfig: { cpuManagerPolicy: 'static' } } : undefined),
  });
  let config: KubeConfig;
  before(async () => {
    listener = await listen((request, response) => void response.end(`answer to ${request.url}`));
    await suite.call('POST', '/api/v1/namespaces/default/pods', podOf('web'));
    const folder = mkdtempSync(join(tmpdir(), 'plumbline-forward-'));
    writeFileSync(join(folder, 'config'), kubeconfig({ server: suite.server.url, ca: suite.server.ca, token: TOKEN }));
    config = new KubeConfig();
    config.loadFromFile(join(folder, 'config'));
    rmSync(folder, { recursive: true });
  });
  after(() => listener.close());

  it('forwards a port to a process of this machine', async () => {
    const answer = await getFromPod(config, { namespace: 'default', pod: 'web', port: 80 }, '/x');
    assert.deepEqual(answer, { status: 200, text: 'answer to /x' });
  });

  for (const { what, pod, port, status, text } of [
    { what: 'a port without a listener', pod: 'web', port: 81, status: 0, text: /^connection refused$/ },
    { what: 'a missing pod', pod: 'none', port: 80, status: 404, text: /404/ },
    { what: 'an impossible port', pod: 'web', port: 0, status: 400, text: /400/ },
  ]) {
    it(`${what}: ${status}`, async () => {
      const failed = await getFromPod(config, { namespace: 'default', pod, port }, '/').then(
        () => assert.fail('it was forwarded'),
        forwardFailure,
      );
      assert.equal(failed.status, status);
      assert.match(failed.text, text);
    });
  }

  it('serves the configuration of a kubelet', async () => {
    const { body } = await suite.call('GET', '/api/v1/nodes/n1/proxy/configz');
    assert.deepEqual(body, { kubeletconfig: { cpuManagerPolicy: 'static' } });
    assert.equal((await suite.call('GET', '/api/v1/nodes/n2/proxy/configz')).status, 404);
  });

  it('reviews the access of its users, who may do everything', async () => {
    const spec = { resourceAttributes: { resource: 'pods', verb: 'create' } };
    const path = '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews';
    const { status, body } = await suite.call('POST', path, { kind: 'SelfSubjectAccessReview', spec });
    assert.deepEqual([status, body['status'], body['spec']], [201, { allowed: true }, spec]);
  });
});
