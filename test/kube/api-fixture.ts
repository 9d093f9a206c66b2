import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createKubeClient } from '../../kube/api-transport.ts';
import type { KubeClient } from '../../kube/client.ts';
import { kubeconfigAccess } from '../../kube/kubeconfig.ts';
import { ApiServer } from '../../sandbox/api-server/server.ts';
import { kubeconfig } from '../../sandbox/cluster/identities.ts';

export interface ApiFixture {
  readonly server: ApiServer;
  readonly client: KubeClient;
  /** The file with which a daemon reaches it. */
  readonly kubeconfig: string;
  stop(): Promise<void>;
}

const TOKEN = 'admin-token';

/** A sandbox API server and a client of it. */
export async function startApi(options: ConstructorParameters<typeof ApiServer>[0] = {}): Promise<ApiFixture> {
  const folder = await mkdtemp(join(tmpdir(), 'plumbline-kube-'));
  const server = new ApiServer({ tokens: { [TOKEN]: { username: 'admin', groups: ['system:masters'] } }, ...options });
  await server.start();
  const file = join(folder, 'kubeconfig');
  await writeFile(file, kubeconfig({ server: server.url, ca: server.ca, token: TOKEN }));
  const client = createKubeClient(kubeconfigAccess(file), 'test');
  return {
    server,
    client,
    kubeconfig: file,
    async stop() {
      await client.close();
      await server.stop();
      await rm(folder, { recursive: true });
    },
  };
}
