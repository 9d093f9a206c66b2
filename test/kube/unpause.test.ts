import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createKubeClient, KubeError } from '../../kube/client.ts';
import { kubeconfigAccess } from '../../kube/kubeconfig.ts';
import { type ApiServer, createApiServer } from '../../sandbox/api-server/server.ts';
import { kubeconfig } from '../../sandbox/cluster/identities.ts';

const PATH = '/apis/subresources.kubevirt.io/v1/namespaces/default/virtualmachineinstances/vm/unpause';

describe("KubeVirt's unpause route", () => {
  let server: ApiServer;
  let folder: string;
  let file: string;
  before(async () => {
    server = createApiServer({ tokens: { 'admin-token': { username: 'admin', groups: ['system:masters'] } } });
    await server.start();
    folder = await mkdtemp(join(tmpdir(), 'plumbline-unpause-'));
    file = join(folder, 'kubeconfig');
    await writeFile(file, kubeconfig({ server: server.url, ca: server.ca, token: 'admin-token' }));
  });
  after(async () => {
    await server.stop();
    await rm(folder, { recursive: true });
  });

  it('accepts the project’s client for the VMI', async () => {
    const client = createKubeClient(kubeconfigAccess(file), 'test');
    // The VMI does not exist: 404 is KubeVirt's answer, while 406 would be the router's.
    await assert.rejects(client.replace(PATH, {}), (error) => error instanceof KubeError && error.status === 404);
    await client.close();
  });
});
