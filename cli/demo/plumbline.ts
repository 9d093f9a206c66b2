import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { AGENT, NAMESPACE, SCHEDULER, WEBHOOK } from '../../model/names.ts';
import { agentArgs, dpuArgs, type InstallOptions } from './agent-args.ts';
import type { DemoCluster } from './cluster.ts';
import { type DaemonName, type DaemonProcess, startDaemon } from './daemons.ts';
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
