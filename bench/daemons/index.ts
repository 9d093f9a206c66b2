import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { kubeconfigAccess } from '../../kube/kubeconfig.ts';
import {
  NAMESPACES,
  NETWORK_ATTACHMENT_DEFINITIONS,
  VIRTUAL_MACHINE_INSTANCES,
} from '../../sandbox/api-server/built-in-types.ts';
import { createSandbox } from '../../sandbox/cluster/cluster.ts';
import { shippedNodeOptions } from '../../test/support/shipped.ts';
import { bundle, memoryOf, type Running, run } from '../support/process.ts';
import { type BenchResult, paced, summary } from '../support/timing.ts';

type DaemonName = 'webhook' | 'scheduler-plugin' | 'node-agent';

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

/** One emulated node without daemons, and files for starting daemons. */
export async function startBenchCluster() {
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
    /** Starts a bundled daemon; resolves when it serves. */
    async start(daemon: DaemonName) {
      const program = bundle(`${daemon}.cjs`);
      const { serviceAccount, env } = await podOf(daemon);
      const command = [process.execPath, program, ...argsOf(daemon)];
      const one = run('unshare', [...IN_POD, MOUNT, serviceAccount, ...command], {
        ...shippedNodeOptions(daemon),
        ...env,
      });
      running.push(one);
      await one.line(({ begins }) => begins === true);
      const begun = performance.now();
      const line = await one.line((found) => typeof found['probePort'] === 'number');
      /** From the moment at which its program was executed until it served. */
      const startMilliseconds = performance.now() - begun;
      return { ...one, port: Number(line['port'] ?? line['probePort']), startMilliseconds };
    },
    /** @returns the uid from the API server */
    addVmi: async (vmi: unknown) =>
      (await sandbox.client.create(VIRTUAL_MACHINE_INSTANCES, vmi as never)).metadata.uid ?? '',
    addNad: async (nad: unknown) => void (await sandbox.client.create(NETWORK_ATTACHMENT_DEFINITIONS, nad as never)),
    async stop() {
      await Promise.all(running.map((one) => one.stop()));
      await sandbox.stop();
      await rm(directory, { recursive: true, force: true });
    },
  };
}

const DAEMONS = ['webhook', 'scheduler-plugin', 'node-agent'] as const;
const ROUNDS = 3;
/** Seconds before a daemon's memory is read. */
const SETTLE = 2;
/** Bounds relative to a process that only listens. */
const BOUNDS = {
  webhook: { start: 8, memory: 3 },
  'scheduler-plugin': { start: 8, memory: 3 },
  'node-agent': { start: 3.5, memory: 2.2 },
} as const;

/** Only node:http, as the base for start-up time and memory. */
const BARE = `require('node:http').createServer().listen(0, '127.0.0.1', () => console.log('{"probePort":1}'))`;

/**
 * Time from the execution of the program until it reports that it serves, and resident memory a moment later, of each
 * bundled daemon relative to a bare Node.js server.
 */
export async function startUpAndMemory(): Promise<BenchResult[]> {
  const cluster = await startBenchCluster();
  const results: BenchResult[] = [];
  try {
    for (const daemon of DAEMONS) {
      const starts: number[] = [];
      const memories: number[] = [];
      for (let round = 0; round < paced(ROUNDS, 2); round++) {
        const bareBegun = performance.now();
        const bare = run(process.execPath, ['-e', BARE]);
        await bare.line(() => true);
        const bareMillis = performance.now() - bareBegun;
        const one = await cluster.start(daemon);
        starts.push(one.startMilliseconds / bareMillis);
        await delay(SETTLE * 1000);
        memories.push(memoryOf(one.pid).rss / memoryOf(bare.pid).rss);
        await Promise.all([one.stop(), bare.stop()]);
      }
      results.push(summary(`${daemon}.start-up-over-bare-node`, starts, { most: BOUNDS[daemon].start }));
      results.push(summary(`${daemon}.rss-over-bare-node`, memories, { most: BOUNDS[daemon].memory }));
    }
    return results;
  } finally {
    await cluster.stop();
  }
}
