import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createKubeClient, type KubeClient } from '../../kube/client.ts';
import { kubeconfigAccess } from '../../kube/kubeconfig.ts';
import { type ApiServer, type ApiServerOptions, createApiServer } from '../../sandbox/api-server/server.ts';
import { kubeconfig } from '../../sandbox/cluster/identities.ts';

export interface ApiFixture {
  readonly server: ApiServer;
  readonly client: KubeClient;
  /** A client with another token. */
  clientWith(token: string): Promise<KubeClient>;
  stop(): Promise<void>;
}

const TOKEN = 'admin-token';

/** A sandbox API server and a client of it. */
export async function startApi(options: ApiServerOptions = {}): Promise<ApiFixture> {
  const folder = await mkdtemp(join(tmpdir(), 'plumbline-kube-'));
  const server = createApiServer({
    tokens: { [TOKEN]: { username: 'admin', groups: ['system:masters'] } },
    ...options,
  });
  await server.start();
  const clients: KubeClient[] = [];
  const clientWith = async (token: string) => {
    const file = join(folder, `${token}.kubeconfig`);
    await writeFile(file, kubeconfig({ server: server.url, ca: server.ca, token }));
    const client = createKubeClient(kubeconfigAccess(file), 'test');
    clients.push(client);
    return client;
  };
  const client = await clientWith(TOKEN);
  return {
    server,
    client,
    clientWith,
    async stop() {
      await Promise.all(clients.map((one) => one.close()));
      await server.stop();
      await rm(folder, { recursive: true });
    },
  };
}
