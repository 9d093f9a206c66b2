import assert from 'node:assert/strict';
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { createKubeClient } from '../../kube/api-transport.ts';
import { kubeconfigAccess } from '../../kube/kubeconfig.ts';
import { NODES } from '../../sandbox/api-server/built-in-types.ts';
import { createSandbox } from '../../sandbox/cluster/cluster.ts';
import { identityUser } from '../../sandbox/cluster/identities.ts';
import { TWO_CELLS } from '../node-agent/support.ts';
import { tempDirectories } from '../support/files.ts';

describe('the embedded cluster', () => {
  const temp = tempDirectories();
  let directory: string;
  let sandbox: ReturnType<typeof createSandbox>;
  before(async () => {
    directory = temp();
    const nodes = [
      { name: 'n1', host: TWO_CELLS, labels: { zone: 'a' } },
      { name: 'n2', host: TWO_CELLS, reserved: '0', kubeletVersion: 'v1.35.0' },
    ];
    sandbox = createSandbox({ directory, nodes });
    await sandbox.start();
  });
  after(() => sandbox.stop());

  it('has a kubelet for each node, with the defaults of its description', () => {
    const facts = sandbox.client.list(NODES).map(({ metadata: { name, labels }, status }) => {
      const info = status?.['nodeInfo'] as { kubeletVersion: string } | undefined;
      return [name, labels?.['zone'], status?.allocatable?.['cpu'], info?.kubeletVersion];
    });
    assert.deepEqual(facts, [
      ['n1', 'a', '6', 'v1.36.0'],
      ['n2', undefined, '7', 'v1.35.0'],
    ]);
    assert.equal(sandbox.node('n2').hostRoot, join(directory, 'n2'));
    assert.throws(() => sandbox.node('n3'), /no node n3; there are n1, n2/);
  });

  it('has a kubeconfig for each identity, for its owner alone', async () => {
    const path = await sandbox.kubeconfig({ kind: 'node-agent', node: 'n1' });
    assert.deepEqual([path, statSync(path).mode & 0o777], [join(directory, 'node-agent-n1.kubeconfig'), 0o600]);
    const client = createKubeClient(kubeconfigAccess(path), 'test');
    await client.get('/api/v1/nodes/n1');
    await client.close();
  });

  for (const [identity, username] of [
    [{ kind: 'admin' }, 'kubernetes-admin'],
    [{ kind: 'webhook' }, 'system:serviceaccount:plumbline-system:plumbline-webhook'],
    [{ kind: 'scheduler-plugin' }, 'system:serviceaccount:plumbline-system:plumbline-scheduler'],
    [{ kind: 'node-agent', node: 'n1' }, 'system:serviceaccount:plumbline-system:plumbline-node-agent'],
    [{ kind: 'dpu', node: 'n1' }, 'system:serviceaccount:plumbline-dpu:n1'],
  ] as const) {
    it(`has the account ${username}`, () => assert.equal(identityUser(identity).username, username));
  }
});
