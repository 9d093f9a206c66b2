import { readFileSync } from 'node:fs';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DPU_LEASE_NAMESPACE } from '../../model/names.ts';
import { NAMESPACES } from '../../sandbox/api-server/built-in-types.ts';
import { readComponents } from '../../sandbox/api-server/openapi.ts';
import { type ClusterOptions, createEmbeddedCluster, type DemoCluster } from './cluster.ts';
import { DaemonPods, startDaemon } from './daemons.ts';
import { createNewFile, requireNew } from './new-file.ts';
import { DEMO_NODES, MASK_NODE } from './nodes.ts';
import { openVswitch } from './open-vswitch.ts';
import { type DemoContext, type Installed, install, OVS_NODE } from './plumbline.ts';
import type { Printer } from './printer.ts';
import { STEPS } from './steps.ts';
import { until } from './until.ts';
import { createVm, DEMO_NAMESPACE, eventsOf, untilRunning } from './vms.ts';

interface DemoOptions {
  readonly dist: string;
  readonly packageRoot: string;
  readonly printer: Printer;
  readonly keep: boolean;
  readonly console?: boolean;
  /** A file to create for the administrator's kubeconfig when everything is up. */
  readonly kubeconfig?: string | undefined;
  readonly command: string;
  readonly createCluster?: (options: ClusterOptions) => DemoCluster;
}

/** Returns whether all steps succeeded; always stops its processes. @throws CliError if the kubeconfig exists */
export async function runDemo(options: DemoOptions): Promise<boolean> {
  const { dist, packageRoot, printer, keep, createCluster = createEmbeddedCluster } = options;
  if (options.kubeconfig !== undefined) await requireNew(options.kubeconfig);
  const began = performance.now();
  const directory = await mkdtemp(join(tmpdir(), 'plumbline-'));
  const interrupted = interruption();
  const physnets = DEMO_NODES.find(({ name }) => name === OVS_NODE)?.physnets ?? {};
  const ovs = await openVswitch(dist, directory, { physnets });
  const pods = new DaemonPods();
  const cluster = createCluster({
    directory,
    nodes: DEMO_NODES.map((node) =>
      node.name === MASK_NODE ? { ...node, guestProgram: join(dist, 'qemu-stand-in.cjs') } : node,
    ),
    packageRoot,
    components: await readComponents(join(dist, 'api-schemas.json')),
    processes: pods,
    onFault: (error) => printer.fault(`cluster: ${String(error)}`),
  });
  let installed: Installed | undefined;
  const context: DemoContext = {
    cluster,
    ovs,
    directory,
    printer,
    async install() {
      installed = await install({ ...options, cluster, nodes: DEMO_NODES, ovs, ovsNode: OVS_NODE, directory, pods });
      return installed;
    },
    installed() {
      if (installed === undefined) throw new Error('the daemons are not started yet');
      return installed;
    },
  };
  let succeeded = false;
  try {
    succeeded = await Promise.race([runSteps(context), interrupted.then(() => false)]);
    printer.end(succeeded, seconds(began), succeeded ? undefined : directory);
    if (keep) await waitUntilInterrupted(context, options, succeeded, interrupted);
  } finally {
    await installed?.stop();
    await cluster.stop();
    await ovs.stop();
    if (succeeded) await rm(directory, { recursive: true, force: true });
  }
  return succeeded;
}

async function runSteps(context: DemoContext): Promise<boolean> {
  const { cluster, printer } = context;
  await cluster.start();
  for (const name of [DEMO_NAMESPACE, DPU_LEASE_NAMESPACE]) {
    await cluster.client.create(NAMESPACES, { apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
  }
  for (const [index, [name, title, run]] of STEPS.entries()) {
    printer.title(`${index + 1}. ${title}`);
    const began = performance.now();
    try {
      const data = await run(context);
      printer.step({ step: name, succeeded: true, seconds: seconds(began), data });
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      printer.step({ step: name, succeeded: false, seconds: seconds(began), data: {}, error: message });
      return false;
    }
  }
  return true;
}

async function waitUntilInterrupted(
  context: DemoContext,
  options: DemoOptions,
  succeeded: boolean,
  interrupted: Promise<void>,
) {
  const { cluster, printer, directory } = context;
  const kubeconfig = await cluster.kubeconfig({ kind: 'admin' });
  if (options.console && succeeded) await createSceneForConsole(context);
  const page = options.console ? await startConsole(context, options.dist, kubeconfig) : undefined;
  // Written last: when the file exists, everything else does.
  const path = options.kubeconfig;
  const remove = path === undefined ? undefined : await createNewFile(path, await readFile(kubeconfig));
  printer.title('Everything is still running');
  printer.lines([
    ...(page === undefined ? [] : [`console: ${page.url}`, '']),
    `export KUBECONFIG=${path ?? kubeconfig}`,
    `${options.command} top`,
    'kubectl get nodes,ntopo,vms,vmis -A',
    'kubectl describe pod -n demo',
    `logs: ${directory}/*.log`,
    'Ctrl-C stops it.',
  ]);
  await interrupted;
  await page?.stop();
  await remove?.();
}

/**
 * Resolves at a signal that would end the process, as Ctrl-C or a closed terminal, or when output is no longer taken, so that
 * all child processes stop. Other commands end at once then.
 */
function interruption(): Promise<void> {
  return new Promise((resolve) => {
    for (const stream of [process.stdout, process.stderr])
      stream.removeAllListeners('error').on('error', () => resolve());
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => resolve());
  });
}

function seconds(since: number): number {
  return Math.round(performance.now() - since) / 1000;
}

/** For the web console: a running VM, and one that waits because the VM of the steps has the cores near its network. */
async function createSceneForConsole({ cluster, printer }: DemoContext): Promise<void> {
  printer.progress('two more VMs: one that fits, and one that must wait');
  await createVm(cluster, { name: 'router', annotated: true, node: 'smt2' });
  await untilRunning(cluster, 'router', 15);
  await createVm(cluster, { name: 'firewall', annotated: true, network: 'dataplane' });
  await until('the scheduler to find no node for firewall', 15, () =>
    eventsOf(cluster, 'firewall').find(({ reason }) => reason === 'FailedScheduling'),
  );
}

/** @param dist directory of the bundles @throws StepFailed if the console does not serve */
async function startConsole({ directory }: DemoContext, dist: string, kubeconfig: string) {
  const args = ['console', '--kubeconfig', kubeconfig];
  const { logFile, stop } = startDaemon({ name: 'console', program: join(dist, 'plumbline.mjs'), args, directory });
  const served = () => /^console: (\S+)$/m.exec(readFileSync(logFile, 'utf8'))?.[1];
  return { url: await until(`the console to be served (its log: ${logFile})`, 10, served), stop: () => stop() };
}
