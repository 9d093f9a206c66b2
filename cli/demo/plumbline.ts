import { mkdir, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { AGENT, NAMESPACE, SCHEDULER, WEBHOOK } from '../../model/names.ts';
import type { DemoCluster } from './cluster.ts';
import { type DaemonName, type DaemonPods, type DaemonProcess, startDaemon } from './daemons.ts';
import type { DemoNode } from './nodes.ts';
import type { SwitchProcesses } from './open-vswitch.ts';
import type { Printer } from './printer.ts';

export type Installed = Awaited<ReturnType<typeof install>>;

export async function install(options: InstallOptions) {
  const { cluster, nodes, dist, directory, pods } = options;
  await cluster.prepare();
  const start = (name: string, daemon: DaemonName, args: readonly string[]) =>
    startDaemon({ name, program: join(dist, `${daemon}.cjs`), args, directory });
  const { cert, key } = cluster.authority.issue([`${WEBHOOK}.${NAMESPACE}.svc`, 'localhost', '127.0.0.1']);
  await cluster.keepCertificate?.(WEBHOOK, { cert, key });
  const folder = join(directory, 'webhook-tls');
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, 'tls.crt'), cert);
  await writeFile(join(folder, 'tls.key'), key, { mode: 0o600 });

  const webhook = start('webhook', 'webhook', [
    ...['--host', '127.0.0.1', '--port', '0', '--probe-host', '127.0.0.1', '--probe-port', '0'],
    ...['--cert-file', join(folder, 'tls.crt'), '--key-file', join(folder, 'tls.key')],
    ...['--kubeconfig', await cluster.kubeconfig({ kind: 'webhook' })],
  ]);
  const schedulerPod = await cluster.schedulerPod?.();
  const schedulerPlugin = start('scheduler-plugin', 'scheduler-plugin', [
    ...['--port', '0', '--probe-host', '127.0.0.1', '--probe-port', '0'],
    ...(schedulerPod === undefined ? [] : ['--pod-name', schedulerPod]),
    ...['--kubeconfig', await cluster.kubeconfig({ kind: 'scheduler-plugin' })],
  ]);
  pods?.add(webhook, WEBHOOK);
  pods?.add(schedulerPlugin, SCHEDULER);
  const agents = new Map<string, DaemonProcess>();
  for (const node of nodes) {
    const agent = start(`node-agent-${node.name}`, 'node-agent', await agentArgs(node, options));
    agents.set(node.name, agent);
    pods?.add(agent, node.dpu ? `${AGENT}-dpu-host` : AGENT, node.name);
  }
  const dpuNode = nodes.find(({ dpu }) => dpu)?.name;
  const dpuSide = {
    process: undefined as DaemonProcess | undefined,
    async start() {
      this.process = start('dpu', 'node-agent', await dpuArgs(dpuNode ?? '', options));
    },
    async kill() {
      await this.process?.stop('SIGKILL');
      this.process = undefined;
    },
  };
  if (dpuNode !== undefined) await dpuSide.start();
  const daemons = () => [webhook, schedulerPlugin, ...agents.values(), ...(dpuSide.process ? [dpuSide.process] : [])];

  return {
    webhook,
    schedulerPlugin,
    agents,
    dpuSide,
    daemons,
    /** Waits until every daemon is ready. @throws StepFailed */
    async ready() {
      await Promise.all(daemons().map((daemon) => daemon.ready()));
    },
    async wire() {
      const [webhookPorts, extenderPorts] = await Promise.all([webhook.ports(), schedulerPlugin.ports()]);
      await cluster.wire({ webhook: webhookPorts.port, extender: extenderPorts.port });
      await cluster.called?.();
    },
    extenderPort: async () => (await schedulerPlugin.ports()).port,
    async stop() {
      await Promise.all(daemons().map((daemon) => daemon.stop()));
    },
  };
}

export interface DemoContext {
  readonly cluster: DemoCluster;
  readonly ovs: SwitchProcesses;
  readonly directory: string;
  readonly printer: Printer;
  install(): Promise<Installed>;
  /** @throws Error before install() */
  installed(): Installed;
}

export const OVS_NODE = 'numa1';

/** Short, so that the demo detects a dead DPU without a long wait. */
export const DPU_LEASE_SECONDS = 3;
const DPU_TIMING = [
  ...['--dpu-node-lease-renew-interval', '1'],
  ...['--dpu-node-lease-duration', String(DPU_LEASE_SECONDS)],
];

interface InstallOptions {
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
    ...DPU_TIMING,
  ];
}

export async function dpuArgs(node: string, { cluster, ovs, directory }: Omit<AgentOptions, 'ovsNode'>) {
  const hostRoot = join(directory, `${node}-dpu`);
  await addSwitch(hostRoot, ovs.rundir);
  const kubeconfig = await cluster.kubeconfig({ kind: 'dpu', node });
  const baseFlags = ['--node-name', node, '--mode', 'dpu', '--kubeconfig', kubeconfig, '--probe-port', '0'];
  return [...baseFlags, '--host-root', hostRoot, ...DPU_TIMING];
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
