import { renameSync, writeFileSync } from 'node:fs';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { addSwitch } from '../../cli/demo/plumbline.ts';
import { NAMESPACE } from '../../model/names.ts';
import { NAMESPACES } from '../../sandbox/api-server/built-in-types.ts';
import { createSandbox } from '../../sandbox/cluster/cluster.ts';
import { shippedNodeOptions } from '../../test/support/shipped.ts';
import { bundle, run } from '../support/process.ts';

export const NODE = 'bench';

export type AgentProcess = Awaited<ReturnType<typeof startAgentProcess>>;

interface AgentOptions {
  /** In addition to those for its paths; the last of two equal flags applies. */
  readonly flags?: readonly string[];
  /** The run directory of the node's Open vSwitch. Default: it has none. */
  readonly rundir?: string;
  /** Changes the agent's kubeconfig, for example to a proxy of the API server that counts. */
  readonly through?: (kubeconfig: string) => Promise<string>;
}

/** The bundled agent on an emulated node of 256 CPUs, started as in the manifests and ready. */
export async function startAgentProcess({ flags = [], rundir, through }: AgentOptions = {}) {
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
  const ownKubeconfig = await sandbox.kubeconfig({ kind: 'node-agent', node: NODE });
  const kubeconfig = (await through?.(ownKubeconfig)) ?? ownKubeconfig;
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
    /** The kubelet's root directory. */
    kubeletDir,
    kubeconfig,
    async stop() {
      await child.stop();
      await sandbox.stop();
      await rm(directory, { recursive: true, force: true });
    },
  };
}

/**
 * Writes cpu_manager_state as the kubelet does: 60 pods of 4 CPUs. `change` number i replaces one of them by another,
 * so that each change frees some CPUs and assigns others.
 */
export function replaceCheckpoint(kubeletDir: string, change: number): void {
  const entries: Record<string, { compute: string }> = {};
  const taken = new Set<number>();
  for (let slot = 0; slot < 60; slot++) {
    const age = Math.floor((change + 59 - slot) / 60);
    const first = 2 + ((slot * 2 + (age % 2) * 120) % 120);
    const cpus = [first, first + 1, first + 128, first + 129];
    for (const cpu of cpus) taken.add(cpu);
    entries[`00000000-0000-4000-8000-${String(slot * 1_000_000 + age).padStart(12, '0')}`] = { compute: cpus.join() };
  }
  const free = Array.from({ length: 256 }, (_, cpu) => cpu).filter((cpu) => !taken.has(cpu));
  renameCheckpoint(kubeletDir, { policyName: 'static', defaultCpuSet: free.join(), entries, checksum: change });
}

/** Replaces cpu_manager_state as the kubelet does. @returns the machine's monotonic nanoseconds just before the rename */
export function renameCheckpoint(kubeletDir: string, state: object): bigint {
  const file = join(kubeletDir, 'cpu_manager_state');
  writeFileSync(`${file}.tmp`, JSON.stringify(state));
  const before = process.hrtime.bigint();
  renameSync(`${file}.tmp`, file);
  return before;
}
