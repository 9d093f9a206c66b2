import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parse, stringify } from 'yaml';
import { NAMESPACE } from '../../model/names.ts';
import { MUTATING_WEBHOOKS } from '../../sandbox/api-server/built-in-types.ts';
import type { Sandbox } from '../../sandbox/cluster.ts';
import type { KubeObject } from '../../sandbox/objects.ts';
import { type DaemonName, type DaemonProcess, startDaemon } from './daemons.ts';
import type { DemoNode } from './nodes.ts';
import type { OpenVswitch } from './open-vswitch.ts';

/** Seconds. Short, so that a DPU's death is noticed while somebody watches. */
export const DPU_RENEW_INTERVAL = 1;
export const DPU_LEASE_DURATION = 3;

export interface InstallOptions {
  readonly sandbox: Sandbox;
  readonly nodes: readonly DemoNode[];
  /** Open vSwitch of the node of that name. */
  readonly ovs: OpenVswitch;
  readonly ovsNode: string;
  readonly directory: string;
  /** Where the bundled daemons are. */
  readonly dist: string;
  /** Where manifests/ is. */
  readonly packageRoot: string;
  readonly replacements: Partial<Record<DaemonName, string>>;
}

/** Plumbline as it is installed in the sandbox: every daemon a process of its own, wired up by the shipped manifests. */
export interface Installed {
  readonly webhook: DaemonProcess;
  readonly schedulerPlugin: DaemonProcess;
  readonly agents: ReadonlyMap<string, DaemonProcess>;
  readonly dpuSide: Dpu;
  /** Everything that runs. */
  daemons(): readonly DaemonProcess[];
  /** The daemons of the list that are not ready yet are waited for. @throws StepFailed */
  ready(): Promise<void>;
  /** Has the API server call the webhook and the scheduler ask the extender, as the manifests say. */
  wire(): Promise<void>;
  /** The extender's port. */
  extenderPort(): Promise<number>;
  stop(): Promise<void>;
}

/** The agent on the DPU, which can die and come back. */
export interface Dpu {
  readonly process: DaemonProcess | undefined;
  start(): Promise<void>;
  kill(): Promise<void>;
}

const SERVICES = { webhook: 'plumbline-webhook', extender: 'plumbline-scheduler-plugin' } as const;

export async function install(options: InstallOptions): Promise<Installed> {
  const { sandbox, nodes, dist, directory, replacements } = options;
  const start = (name: string, daemon: DaemonName, args: readonly string[]) =>
    startDaemon({ name, program: replacements[daemon] ?? join(dist, `${daemon}.cjs`), args, directory });
  const serve = async (name: string, service: string) => {
    const { cert, key } = sandbox.authority.issue([`${service}.${NAMESPACE}.svc`, 'localhost', '127.0.0.1']);
    const folder = join(directory, `${name}-tls`);
    await mkdir(folder, { recursive: true });
    await writeFile(join(folder, 'tls.crt'), cert);
    await writeFile(join(folder, 'tls.key'), key, { mode: 0o600 });
    const local = ['--host', '127.0.0.1', '--port', '0', '--probe-host', '127.0.0.1', '--probe-port', '0'];
    return [...local, '--cert-file', join(folder, 'tls.crt'), '--key-file', join(folder, 'tls.key')];
  };

  const webhook = start('webhook', 'webhook', [
    ...(await serve('webhook', SERVICES.webhook)),
    ...['--kubeconfig', await sandbox.kubeconfig({ kind: 'webhook' })],
  ]);
  const schedulerPlugin = start('scheduler-plugin', 'scheduler-plugin', [
    ...(await serve('scheduler-plugin', SERVICES.extender)),
    ...['--kubeconfig', await sandbox.kubeconfig({ kind: 'scheduler-plugin' })],
  ]);
  const agents = new Map<string, DaemonProcess>();
  for (const node of nodes) {
    agents.set(node.name, start(`node-agent-${node.name}`, 'node-agent', await agentArgs(node, options)));
  }
  const dpuSide = createDpu(nodes.find(({ dpu }) => dpu)?.name ?? '', options, start);
  await dpuSide.start();
  const daemons = () => [webhook, schedulerPlugin, ...agents.values(), ...(dpuSide.process ? [dpuSide.process] : [])];

  return {
    webhook,
    schedulerPlugin,
    agents,
    dpuSide,
    daemons,
    async ready() {
      await Promise.all(daemons().map((daemon) => daemon.ready()));
    },
    async wire() {
      const webhookPort = (await webhook.ports()).port;
      const extenderPort = (await schedulerPlugin.ports()).port;
      sandbox.route(NAMESPACE, SERVICES.webhook, { host: '127.0.0.1', port: webhookPort });
      sandbox.route(NAMESPACE, SERVICES.extender, { host: '127.0.0.1', port: extenderPort });
      await wireManifests(sandbox, options.packageRoot);
    },
    extenderPort: async () => (await schedulerPlugin.ports()).port,
    async stop() {
      await Promise.all(daemons().map((daemon) => daemon.stop()));
    },
  };
}

async function agentArgs(node: DemoNode, { sandbox, ovs, ovsNode, directory }: InstallOptions): Promise<string[]> {
  const emulated = sandbox.node(node.name);
  const networkMap = join(directory, `${node.name}-networks.yaml`);
  const physnets = Object.entries(node.physnets).map(([name, numaNodes]) => [name, { numaNodes: [...numaNodes] }]);
  await writeFile(networkMap, stringify({ physnets: Object.fromEntries(physnets) }));
  const own = node.name === ovsNode;
  return [
    ...['--node-name', node.name, '--mode', node.dpu ? 'dpu-host' : 'full'],
    ...['--kubeconfig', await sandbox.kubeconfig({ kind: 'node-agent', node: node.name })],
    ...['--sysfs-root', emulated.sysfsRoot, '--kubelet-dir', emulated.kubeletDirectory],
    ...['--network-map', networkMap, '--probe-port', '0'],
    // Only one of the emulated nodes has an Open vSwitch; the others look where there is none.
    ...['--ovs-rundir', own ? ovs.rundir : join(directory, 'no-ovs')],
    ...['--ovs-enabler', own ? ovs.enabler : join(directory, 'no-ovs', 'enabler')],
    ...dpuTiming(),
  ];
}

function createDpu(
  node: string,
  { sandbox, ovs }: InstallOptions,
  start: (name: string, daemon: DaemonName, args: readonly string[]) => DaemonProcess,
): Dpu {
  let process: DaemonProcess | undefined;
  return {
    get process() {
      return process;
    },
    async start() {
      const kubeconfig = await sandbox.kubeconfig({ kind: 'dpu', node });
      process = start('dpu', 'node-agent', [
        ...['--node-name', node, '--mode', 'dpu', '--kubeconfig', kubeconfig, '--probe-port', '0'],
        ...['--ovs-rundir', ovs.rundir],
        ...dpuTiming(),
      ]);
    },
    async kill() {
      await process?.stop('SIGKILL');
      process = undefined;
    },
  };
}

function dpuTiming(): string[] {
  const flags = ['--dpu-node-lease-renew-interval', String(DPU_RENEW_INTERVAL)];
  return [...flags, '--dpu-node-lease-duration', String(DPU_LEASE_DURATION)];
}

/** The shipped webhook configuration and scheduler configuration, with the CA that cert-manager would put in. */
async function wireManifests(sandbox: Sandbox, packageRoot: string): Promise<void> {
  const caBundle = Buffer.from(sandbox.authority.cert).toString('base64');
  const read = async (path: string): Promise<unknown> =>
    parse(await readFile(join(packageRoot, 'manifests', path), 'utf8'));
  const configuration = (await read('base/webhook/mutating-webhook.yaml')) as KubeObject & {
    webhooks: { clientConfig: { caBundle?: string }; matchConditions?: unknown }[];
  };
  for (const webhook of configuration.webhooks) {
    webhook.clientConfig.caBundle = caBundle;
    // The embedded API server has no CEL and refuses conditions; without them the webhook is only asked more often.
    delete webhook.matchConditions;
  }
  await sandbox.client.create(MUTATING_WEBHOOKS, configuration);
  const scheduler = (await read('scheduler/kube-scheduler-config.yaml')) as {
    extenders: { tlsConfig?: { caFile?: string; caData?: string } }[];
  };
  for (const extender of scheduler.extenders) extender.tlsConfig = { caData: caBundle };
  await sandbox.reconfigureScheduler(scheduler);
}
