import { writeFile } from 'node:fs/promises';
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
  readonly ovs: Pick<SwitchProcesses, 'rundir' | 'enabler'>;
  readonly ovsNode: string;
  readonly directory: string;
  readonly dist: string;
  readonly pods?: DaemonPods;
}

type AgentOptions = Pick<InstallOptions, 'cluster' | 'ovs' | 'ovsNode' | 'directory'>;

export async function agentArgs(node: DemoNode, { cluster, ovs, ovsNode, directory }: AgentOptions): Promise<string[]> {
  const emulated = cluster.node(node.name);
  const networkMap = join(directory, `${node.name}-networks.yaml`);
  const physnets = Object.entries(node.physnets).map(([name, numaNodes]) => [name, { numaNodes: [...numaNodes] }]);
  await writeFile(networkMap, stringify({ physnets: Object.fromEntries(physnets) }));
  const own = node.name === ovsNode;
  return [
    ...['--node-name', node.name, '--mode', node.dpu ? 'dpu-host' : 'full'],
    ...['--kubeconfig', await cluster.kubeconfig({ kind: 'node-agent', node: node.name })],
    ...['--sysfs-root', emulated.sysfsRoot, '--kubelet-dir', emulated.kubeletDirectory],
    ...['--kubelet-config', join(emulated.kubeletDirectory, 'config.yaml')],
    ...['--cgroup-root', emulated.cgroupRoot, '--state-dir', join(directory, `${node.name}-state`)],
    ...['--network-map', networkMap, '--probe-port', '0'],
    // Only one of the emulated nodes has an Open vSwitch; the others get an empty directory.
    ...['--ovs-rundir', own ? ovs.rundir : join(directory, 'no-ovs')],
    ...['--ovs-enabler', own ? ovs.enabler : join(directory, 'no-ovs', 'enabler')],
    ...dpuTiming(),
  ];
}

export async function dpuArgs(node: string, { cluster, ovs }: Pick<InstallOptions, 'cluster' | 'ovs'>) {
  const kubeconfig = await cluster.kubeconfig({ kind: 'dpu', node });
  const own = ['--node-name', node, '--mode', 'dpu', '--kubeconfig', kubeconfig, '--probe-port', '0'];
  return [...own, '--ovs-rundir', ovs.rundir, ...dpuTiming()];
}

function dpuTiming(): string[] {
  const flags = ['--dpu-node-lease-renew-interval', String(DPU_RENEW_INTERVAL_SECONDS)];
  return [...flags, '--dpu-node-lease-duration', String(DPU_LEASE_SECONDS)];
}
