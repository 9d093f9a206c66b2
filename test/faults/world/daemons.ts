import { once } from 'node:events';
import { mkdir, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import type { DemoCluster } from '../../../cli/demo/cluster.ts';
import type { SwitchProcesses } from '../../../cli/demo/open-vswitch.ts';
import { agentArgs, dpuArgs } from '../../../cli/demo/plumbline.ts';
import { NAMESPACE, SCHEDULER, WEBHOOK } from '../../../model/names.ts';
import type { SchedulerProgram } from '../../real/control-plane-stage.ts';
import { shippedNodeOptions } from '../../support/shipped.ts';
import { type ApiGate, redirect } from './api-gate.ts';
import { DPU_NODE, NODES, VSWITCH_NODE } from './nodes.ts';
import { createReplicas, schedulerPair } from './replicas.ts';
import { type Supervised, type SupervisedOptions, supervise } from './supervised.ts';

export type Daemons = Awaited<ReturnType<typeof startDaemons>>;

export interface DaemonsOptions {
  readonly cluster: DemoCluster;
  readonly gate: ApiGate;
  readonly ovs: SwitchProcesses;
  readonly directory: string;
  readonly dist: string;
  readonly process?: Process;
  /** Starts the kube-scheduler of a pod. Without it there is one extender, next to the sandbox's scheduler. */
  readonly startScheduler?: (hostName: string, extender: number) => Promise<SchedulerProgram>;
}

/** Parameters of a process in addition to the program's own arguments. */
export type Process = Pick<SupervisedOptions, 'nodeArgs' | 'env'>;

const REPLICAS = 2;

export async function startDaemons(options: DaemonsOptions) {
  const { cluster, gate, directory } = options;
  const all: Supervised[] = [];
  const through: DemoCluster = {
    ...cluster,
    kubeconfig: async (identity) => redirect(await cluster.kubeconfig(identity), gate),
  };
  const start = async (
    name: string,
    program: Parameters<typeof shippedNodeOptions>[0],
    args: readonly string[],
    more: Process = {},
    dist = options.dist,
  ) => {
    const [port, probePort] = [await lastingPort(), await lastingPort()];
    const serving = program === 'node-agent' ? [] : ['--host', '127.0.0.1', '--port', String(port)];
    const probes = ['--probe-host', '127.0.0.1', '--probe-port', String(probePort)];
    const file = join(dist, `${program}.cjs`);
    const given = {
      args: [...args, ...serving, ...probes],
      ...together({ env: shippedNodeOptions(program) }, together(options.process, more)),
    };
    const daemon = supervise({ name, program: file, directory, port, probePort, ...given });
    all.push(daemon);
    return daemon;
  };

  const issue = () => {
    const { cert, key } = cluster.authority.issue([`${WEBHOOK}.plumbline-system.svc`, 'localhost', '127.0.0.1']);
    return { 'tls.crt': cert, 'tls.key': key };
  };
  const secret = await mountSecret(join(directory, 'webhook-tls'), issue());
  const certificate = ['--cert-file', secret.path('tls.crt'), '--key-file', secret.path('tls.key')];
  const { startScheduler } = options;
  const webhookConfig = ['--kubeconfig', await through.kubeconfig({ kind: 'webhook' })];
  const extenderConfig = ['--kubeconfig', await through.kubeconfig({ kind: 'scheduler-plugin' })];
  const webhooks = await createReplicas(REPLICAS, options.dist, (i, dist) =>
    start(`webhook-${i}`, 'webhook', [...certificate, ...webhookConfig], {}, dist),
  );
  const schedulers = startScheduler === undefined ? 1 : REPLICAS;
  const extenders = await createReplicas(schedulers, options.dist, async (i, dist) => {
    const name = `extender-${i}`;
    const lease = ['--scheduler-lease', `${NAMESPACE}/${SCHEDULER}`];
    const pod = ['--pod-name', (startScheduler === undefined ? await cluster.schedulerPod?.() : undefined) ?? name];
    const extender = await start(name, 'scheduler-plugin', [...extenderConfig, ...lease, ...pod], {}, dist);
    return startScheduler === undefined ? extender : schedulerPair(extender, () => startScheduler(name, extender.port));
  });
  const stateDirectory = (node: string) => join(cluster.node(node).hostRoot, 'var/lib/plumbline');
  const agents: Supervised[] = [];
  for (const node of NODES) {
    const own = await agentArgs(node, { cluster: through, ovs: options.ovs, ovsNode: VSWITCH_NODE, directory });
    agents.push(await start(`agent-${node.name}`, 'node-agent', [...own, '--kubelet-endpoint', '']));
  }
  const dpuClock = join(directory, 'dpu-clock');
  await writeFile(dpuClock, '0');
  const jumping = {
    nodeArgs: ['--require', join(import.meta.dirname, 'jumping-clock.cjs')],
    env: { PLUMBLINE_TEST_CLOCK: dpuClock },
  };
  await start('dpu', 'node-agent', await dpuArgs(DPU_NODE, { cluster: through, ovs: options.ovs, directory }), jumping);

  const webhook = await startForwarder(webhooks.endpoints);
  return {
    all,
    webhooks,
    extenders,
    agents,
    /** Connections to the webhook's Service that no pod accepted at once. */
    get webhookRefused() {
      return webhook.refused;
    },
    /** @throws RangeError */
    get(name: string): Supervised {
      const found = all.find((daemon) => daemon.name === name);
      if (!found) throw new RangeError(`no daemon ${name}`);
      return found;
    },
    ports: { webhook: webhook.port, extender: extenders.pods[0]?.port ?? 0 },
    rotateCertificate: () => secret.write(issue()),
    stateDirectory,
    /** The file with the offset of the DPU's clock (milliseconds). */
    dpuClock,
    async ready(seconds: number) {
      await Promise.all([...all, ...extenders.pods].map((one) => one.ready(seconds)));
    },
    async stop() {
      await Promise.all(all.map((daemon) => daemon.stop()));
      await webhook.stop();
    },
  };
}

function together(a: Process = {}, b: Process): Process {
  return { nodeArgs: [...(a.nodeArgs ?? []), ...(b.nodeArgs ?? [])], env: { ...a.env, ...b.env } };
}

/** Below the range of outgoing connections, so that no other process takes the port while its daemon is down. */
const RANGE = { first: 12_000, last: 32_000 };
let next = RANGE.first + (process.pid % 1000) * 20;

async function lastingPort(): Promise<number> {
  for (;;) {
    const port = next++;
    if (next > RANGE.last) next = RANGE.first;
    if (await isFree(port)) return port;
  }
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
  });
}

/** Milliseconds between checks of the targets. */
const CHECK_MILLISECONDS = 10;

/** A Service for its callers: one port. @param targets its ports on loopback, used in turn for new connections */
async function startForwarder(targets: () => readonly number[]) {
  const thread = new Worker(join(import.meta.dirname, 'forwarder-thread.cjs'));
  const [{ port, refused }] = (await once(thread, 'message')) as [{ port: number; refused: Int32Array }];
  let announced = '';
  const look = () => {
    const ports = targets();
    if (announced === `${ports}`) return;
    announced = `${ports}`;
    thread.postMessage(ports);
  };
  look();
  const timer = setInterval(look, CHECK_MILLISECONDS);
  return {
    port,
    get refused() {
      return Atomics.load(refused, 0);
    },
    async stop() {
      clearInterval(timer);
      await thread.terminate();
    },
  };
}

interface MountedSecret {
  path(file: string): string;
  write(files: Readonly<Record<string, string>>): Promise<void>;
}

async function mountSecret(directory: string, first: Readonly<Record<string, string>>): Promise<MountedSecret> {
  let version = 0;
  const path = (file: string) => join(directory, file);
  const write = async (files: Readonly<Record<string, string>>) => {
    const before = `..${version}`;
    const folder = `..${++version}`;
    await mkdir(path(folder), { recursive: true });
    for (const [file, text] of Object.entries(files)) await writeFile(join(path(folder), file), text, { mode: 0o600 });
    await symlink(folder, path('..data_tmp'));
    await rename(path('..data_tmp'), path('..data'));
    await rm(path(before), { recursive: true, force: true });
  };
  await write(first);
  for (const file of Object.keys(first)) await symlink(join('..data', file), path(file));
  return { path, write };
}
