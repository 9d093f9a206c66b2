import { mkdir, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { stringify } from 'yaml';
import type { DemoCluster } from './cluster.ts';
import type { DaemonPods } from './daemons.ts';
import type { DemoNode } from './nodes.ts';
import type { SwitchProcesses } from './open-vswitch.ts';

/** Seconds; short, so that the demo detects a dead DPU without a long wait. */
const DPU_RENEW_INTERVAL_SECONDS = 1;
export const DPU_LEASE_SECONDS = 3;

export interface InstallOptions {
  readonly cluster: DemoCluster;
  readonly nodes: readonly DemoNode[];
  readonly ovs: Pick<SwitchProcesses, 'rundir'>;
  readonly ovsNode: string;
  readonly directory: string;
  readonly dist: string;
  readonly pods?: DaemonPods;
}

type AgentOptions = Pick<InstallOptions, 'cluster' | 'ovs' | 'ovsNode' | 'directory'>;

export async function agentArgs(node: DemoNode, { cluster, ovs, ovsNode, directory }: AgentOptions): Promise<string[]> {
  const { hostRoot, kubeletDirectory } = cluster.node(node.name);
  const networkMap = join(directory, `${node.name}-networks.yaml`);
  const physnets = Object.entries(node.physnets).map(([name, numaNodes]) => [name, { numaNodes: [...numaNodes] }]);
  await writeFile(networkMap, stringify({ physnets: Object.fromEntries(physnets) }));
  // Only one of the emulated nodes has an Open vSwitch.
  if (node.name === ovsNode) await addSwitch(hostRoot, ovs.rundir);
  return [
    ...['--node-name', node.name, '--mode', node.dpu ? 'dpu-host' : 'full'],
    ...['--kubeconfig', await cluster.kubeconfig({ kind: 'node-agent', node: node.name })],
    ...['--host-root', hostRoot, '--kubelet-config', join(kubeletDirectory, 'config.yaml')],
    ...['--network-map', networkMap, '--probe-port', '0'],
    ...dpuTiming(),
  ];
}

export async function dpuArgs(node: string, { cluster, ovs, directory }: Omit<AgentOptions, 'ovsNode'>) {
  const hostRoot = join(directory, `${node}-dpu`);
  await addSwitch(hostRoot, ovs.rundir);
  const kubeconfig = await cluster.kubeconfig({ kind: 'dpu', node });
  const baseFlags = ['--node-name', node, '--mode', 'dpu', '--kubeconfig', kubeconfig, '--probe-port', '0'];
  return [...baseFlags, '--host-root', hostRoot, ...dpuTiming()];
}

function dpuTiming(): string[] {
  const flags = ['--dpu-node-lease-renew-interval', String(DPU_RENEW_INTERVAL_SECONDS)];
  return [...flags, '--dpu-node-lease-duration', String(DPU_LEASE_SECONDS)];
}

/** Gives an emulated host the Open vSwitch of this machine with that run directory. */
export async function addSwitch(hostRoot: string, rundir: string): Promise<void> {
  const [run, etc] = [join(hostRoot, 'var/run'), join(hostRoot, 'etc/openvswitch')];
  for (const path of [run, etc]) await mkdir(path, { recursive: true });
  await writeFile(join(etc, 'enable_dynamic_cpu_affinity'), '1\n');
  const link = join(run, 'openvswitch');
  await rm(link, { force: true });
  await symlink(rundir, link);
}
