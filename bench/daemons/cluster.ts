import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { kubeconfigAccess } from '../../kube/kubeconfig.ts';
import {
  NAMESPACES,
  NETWORK_ATTACHMENT_DEFINITIONS,
  VIRTUAL_MACHINE_INSTANCES,
} from '../../sandbox/api-server/built-in-types.ts';
import type { LocalClient } from '../../sandbox/clients/local-client.ts';
import { createSandbox } from '../../sandbox/cluster/cluster.ts';
import { shippedNodeOptions } from '../../test/support/shipped.ts';
import { bundle, type Running, run } from '../support/process.ts';

type DaemonName = 'webhook' | 'scheduler-plugin' | 'node-agent';

export interface StartedDaemon extends Running {
  readonly port: number;
  /** From the moment at which its program was executed until it served. */
  readonly startMilliseconds: number;
}

/** One emulated node without daemons, and files for starting daemons. */
export interface BenchCluster {
  readonly ca: string;
  readonly certificate: { readonly cert: string; readonly key: string };
  /** Starts a bundled daemon; resolves when it serves. */
  start(daemon: DaemonName, nodeArgs?: readonly string[]): Promise<StartedDaemon>;
  /** Creates objects from a file; for a VMI the result is the uid from the API server. */
  addVmi(vmi: unknown): Promise<string>;
  addNad(nad: unknown): Promise<void>;
  readonly client: LocalClient;
  stop(): Promise<void>;
}

/**
 * Puts a service account where the kubelet does, in a mount namespace, and becomes the program. A daemon in a pod reads
 * no kubeconfig, and the reader of kubeconfigs takes longer than the rest of a start.
 */
const IN_POD = ['--map-root-user', '--mount', 'sh', '-ec'];
const MOUNT = `mount -t tmpfs none /run
mkdir -p /run/secrets/kubernetes.io
ln -s "$0" /run/secrets/kubernetes.io/serviceaccount
echo '{"begins":true}'
exec "$@"`;

/** The namespace of the launcher pod in test/vectors. */
const BENCH_NAMESPACE = 'telco-east';

const NODE = {
  name: 'bench',
  host: { cells: [{ id: 0, cpus: '0-7' }], cores: ['0,4', '1,5', '2,6', '3,7'] },
};

export async function startBenchCluster(): Promise<BenchCluster> {
  const directory = await mkdtemp(join(tmpdir(), 'plumbline-bench-'));
  const sandbox = createSandbox({ directory, nodes: [NODE] });
  await sandbox.start();
  await sandbox.client.create(NAMESPACES, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: BENCH_NAMESPACE } });
  const certificate = sandbox.authority.issue(['localhost', '127.0.0.1']);
  const [certFile, keyFile] = [join(directory, 'tls.crt'), join(directory, 'tls.key')];
  await writeFile(certFile, certificate.cert);
  await writeFile(keyFile, certificate.key);
  const running: Running[] = [];
  const node = sandbox.node(NODE.name);

  const podOf = async (daemon: DaemonName) => {
    const identity =
      daemon === 'node-agent' ? ({ kind: daemon, node: NODE.name } as const) : ({ kind: daemon } as const);
    const { server, token } = kubeconfigAccess(await sandbox.kubeconfig(identity));
    const serviceAccount = join(directory, `${daemon}-account`);
    await mkdir(serviceAccount, { recursive: true });
    await writeFile(join(serviceAccount, 'ca.crt'), sandbox.server.ca);
    await writeFile(join(serviceAccount, 'token'), token() ?? '');
    const { hostname, port } = new URL(server);
    return { serviceAccount, env: { KUBERNETES_SERVICE_HOST: hostname, KUBERNETES_SERVICE_PORT: port } };
  };

  const argsOf = (daemon: DaemonName): string[] => {
    if (daemon !== 'node-agent') {
      const local = ['--host', '127.0.0.1', '--port', '0', '--probe-host', '127.0.0.1', '--probe-port', '0'];
      const files = daemon === 'webhook' ? ['--cert-file', certFile, '--key-file', keyFile] : [];
      return [...local, ...files];
    }
    const roots = ['--host-root', node.hostRoot, '--kubelet-config', join(node.kubeletDirectory, 'config.yaml')];
    return ['--node-name', NODE.name, '--probe-port', '0', ...roots];
  };

  return {
    ca: sandbox.authority.cert,
    client: sandbox.client,
    certificate,
    async start(daemon, nodeArgs = []) {
      const program = bundle(`${daemon}.cjs`);
      const { serviceAccount, env } = await podOf(daemon);
      const command = [process.execPath, ...nodeArgs, program, ...argsOf(daemon)];
      const one = run('unshare', [...IN_POD, MOUNT, serviceAccount, ...command], {
        ...shippedNodeOptions(daemon),
        ...env,
      });
      running.push(one);
      await one.line(({ begins }) => begins === true);
      const begun = performance.now();
      const line = await one.line((found) => typeof found['probePort'] === 'number');
      const startMilliseconds = performance.now() - begun;
      return { ...one, port: Number(line['port'] ?? line['probePort']), startMilliseconds };
    },
    addVmi: async (vmi) => (await sandbox.client.create(VIRTUAL_MACHINE_INSTANCES, vmi as never)).metadata.uid ?? '',
    addNad: async (nad) => void (await sandbox.client.create(NETWORK_ATTACHMENT_DEFINITIONS, nad as never)),
    async stop() {
      await Promise.all(running.map((one) => one.stop()));
      await sandbox.stop();
      await rm(directory, { recursive: true, force: true });
    },
  };
}
