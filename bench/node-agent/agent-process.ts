import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { addSwitch } from '../../cli/demo/agent-args.ts';
import { NAMESPACE } from '../../model/names.ts';
import { NAMESPACES } from '../../sandbox/api-server/built-in-types.ts';
import { createSandbox } from '../../sandbox/cluster/cluster.ts';
import { shippedNodeOptions } from '../../test/support/shipped.ts';
import { bundle, type Running, run } from '../support/process.ts';
import { replaceCheckpoint } from './checkpoint.ts';

type Sandbox = ReturnType<typeof createSandbox>;

export const NODE = 'bench';

/** The bundled agent on an emulated node of 256 CPUs, started as in the manifests and ready. */
export interface AgentProcess {
  readonly sandbox: Sandbox;
  readonly process: Running;
  readonly hostRoot: string;
  /** The kubelet's root directory. */
  readonly kubeletDir: string;
  /** A kubeconfig for an agent. */
  readonly kubeconfig: string;
  stop(): Promise<void>;
}

interface AgentOptions {
  /** In addition to those for its paths; the last of two equal flags applies. */
  readonly flags?: readonly string[];
  /** The run directory of the node's Open vSwitch. Default: it has none. */
  readonly rundir?: string;
}

export async function startAgentProcess(options?: AgentOptions): Promise<AgentProcess> {
  return startAgentBehind(async (kubeconfig) => kubeconfig, options);
}

/** @param through changes the agent's kubeconfig, for example to a proxy of the API server that counts */
export async function startAgentBehind(
  through: (kubeconfig: string) => Promise<string>,
  { flags = [], rundir }: AgentOptions = {},
): Promise<AgentProcess> {
  const directory = await mkdtemp(join(tmpdir(), 'plumb-'));
  const cores = Array.from({ length: 128 }, (_, core) => `${core},${core + 128}`);
  const host = {
    cells: [
      { id: 0, cpus: '0-63,128-191' },
      { id: 1, cpus: '64-127,192-255' },
    ],
    cores,
  };
  const sandbox = createSandbox({ directory, nodes: [{ name: NODE, host, reserved: '0-1,128-129' }] });
  await sandbox.start();
  // The agent's heartbeat is a Lease in this namespace. Without it each heartbeat would be three refused requests.
  const metadata = { name: NAMESPACE };
  await sandbox.client.create(NAMESPACES, { apiVersion: 'v1', kind: 'Namespace', metadata });
  const { kubeletDirectory: kubeletDir, hostRoot } = sandbox.node(NODE);
  replaceCheckpoint(kubeletDir, 0);
  const kubeconfig = await through(await sandbox.kubeconfig({ kind: 'node-agent', node: NODE }));
  const program = bundle('node-agent.cjs');
  const settings = ['--node-name', NODE, '--kubeconfig', kubeconfig, '--probe-port', '0'];
  const places = ['--host-root', hostRoot, '--kubelet-config', join(kubeletDir, 'config.yaml')];
  for (const path of ['etc/cni/net.d', 'opt/cni/bin']) await mkdir(join(hostRoot, path), { recursive: true });
  if (rundir !== undefined) await addSwitch(hostRoot, rundir);
  const child = run(process.execPath, [program, ...settings, ...places, ...flags], shippedNodeOptions('node-agent'));
  await child.line(({ msg }) => msg === 'published node topology');
  await child.line(({ msg }) => msg === 'device plugin registered with the kubelet');
  return {
    sandbox,
    process: child,
    hostRoot,
    kubeletDir,
    kubeconfig,
    async stop() {
      await child.stop();
      await sandbox.stop();
      await rm(directory, { recursive: true, force: true });
    },
  };
}
