import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type DemoCluster, SERVICES } from '../../../cli/demo/cluster.ts';
import type { OpenVswitch } from '../../../cli/demo/open-vswitch.ts';
import { agentArgs, dpuArgs } from '../../../cli/demo/plumbline.ts';
import { NAMESPACE, SCHEDULER } from '../../../model/names.ts';
import { ENDPOINT_SLICES } from '../../../sandbox/api-server/built-in-types.ts';
import { at } from '../../../sandbox/objects.ts';
import type { SchedulerProgram } from '../../real/control-plane.ts';
import { shippedNodeOptions } from '../../support/shipped.ts';
import type { ApiGate } from './api-gate.ts';
import { startForwarder } from './forwarder.ts';
import { DPU_NODE, NODES, VSWITCH_NODE } from './nodes.ts';
import { lastingPort } from './ports.ts';
import { createReplicas, type Replicas } from './replicas.ts';
import { schedulerPair } from './scheduler-pair.ts';
import { type ServingPair, servingPair } from './serving-pair.ts';
import { type Supervised, type SupervisedOptions, supervise } from './supervised.ts';
import { redirect } from './through-gate.ts';

/** Two webhooks, two extenders of which one decides, an agent on each node, an agent on the DPU. */
export interface Daemons {
  readonly all: readonly Supervised[];
  /** The Deployments' pods, and the DaemonSet's. */
  readonly webhooks: Replicas;
  readonly extenders: Replicas;
  readonly agents: readonly Supervised[];
  /** @throws RangeError */
  get(name: string): Supervised;
  /** The Services' ports. */
  readonly services: { readonly webhook: number; readonly extender: number };
  /** Connections to the webhook's Service that no pod accepted at once. */
  readonly webhookRefused: number;
  readonly certificates: readonly ServingPair[];
  /** The directory of an agent's files, and the file with the offset of the DPU's clock (milliseconds). */
  stateDirectory(node: string): string;
  readonly dpuClock: string;
  ready(seconds: number): Promise<void>;
  stop(): Promise<void>;
}

export interface DaemonsOptions {
  readonly cluster: DemoCluster;
  readonly gate: ApiGate;
  readonly ovs: OpenVswitch;
  readonly directory: string;
  /** The bundles. */
  readonly dist: string;
  /** Common arguments of all daemons. */
  readonly process?: Process;
  /**
   * Starts the kube-scheduler of the pod with this name, for extenders that are its sidecars. Otherwise they are behind
   * a Service.
   */
  readonly startScheduler?: (hostName: string, extender: number) => Promise<SchedulerProgram>;
}

/** Parameters of a process in addition to the program's own arguments. */
export type Process = Pick<SupervisedOptions, 'nodeArgs' | 'env'>;

/** Of webhook and extender. */
const REPLICAS = 2;
/** The published addresses: an EndpointSlice may not contain a loopback address. Only the port is used. */
const POD_NETWORK = '10.244.0.';

export async function startDaemons(options: DaemonsOptions): Promise<Daemons> {
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

  const [webhookPair, extenderPair] = await Promise.all([
    servingPair(await folder(directory, 'webhook-tls'), cluster.authority, SERVICES.webhook),
    servingPair(await folder(directory, 'extender-tls'), cluster.authority, SERVICES.extender),
  ]);
  const { startScheduler } = options;
  const route = startScheduler === undefined ? ['--scheduler-name', ''] : [];
  const webhookConfig = [...route, '--kubeconfig', await through.kubeconfig({ kind: 'webhook' })];
  const extenderConfig = ['--kubeconfig', await through.kubeconfig({ kind: 'scheduler-plugin' })];
  const webhooks = await createReplicas(REPLICAS, options.dist, (i, dist) =>
    start(`webhook-${i}`, 'webhook', [...webhookPair.args, ...webhookConfig], {}, dist),
  );
  const extenders = await createReplicas(REPLICAS, options.dist, async (i, dist) => {
    const name = `extender-${i}`;
    if (startScheduler !== undefined) {
      const sidecar = ['--mode', 'sidecar', '--scheduler-lease', `${NAMESPACE}/${SCHEDULER}`, '--pod-name', name];
      const extender = await start(name, 'scheduler-plugin', [...extenderConfig, ...sidecar], {}, dist);
      return schedulerPair(extender, () => startScheduler(name, extender.port));
    }
    const identity = ['--pod-name', name, '--pod-ip', `${POD_NETWORK}${i}`];
    const service = ['--mode', 'service', '--client-ca-file', '', '--explain-address', 'off'];
    const args = [...extenderPair.args, ...extenderConfig, ...service, ...identity];
    return start(name, 'scheduler-plugin', args, {}, dist);
  });
  const stateDirectory = (node: string) => join(directory, `${node}-state`);
  const agents: Supervised[] = [];
  for (const node of NODES) {
    const state = await folder(directory, `${node.name}-state`);
    const own = await agentArgs(node, { cluster: through, ovs: options.ovs, ovsNode: VSWITCH_NODE, directory });
    const files = ['--state-dir', state, '--run-dir', state, '--kubelet-endpoint', ''];
    agents.push(await start(`agent-${node.name}`, 'node-agent', [...own, ...files]));
  }
  const dpuClock = join(directory, 'dpu-clock');
  await writeFile(dpuClock, '0');
  const jumping = {
    nodeArgs: ['--require', join(import.meta.dirname, 'jumping-clock.cjs')],
    env: { PLUMBLINE_TEST_CLOCK: dpuClock },
  };
  await start('dpu', 'node-agent', await dpuArgs(DPU_NODE, { cluster: through, ovs: options.ovs }), jumping);

  const webhook = await startForwarder(webhooks.endpoints);
  const extender = await startForwarder(() => published(cluster));
  return {
    all,
    webhooks,
    extenders,
    agents,
    get webhookRefused() {
      return webhook.refused;
    },
    get(name) {
      const found = all.find((daemon) => daemon.name === name);
      if (!found) throw new RangeError(`no daemon ${name}`);
      return found;
    },
    services: { webhook: webhook.port, extender: extender.port },
    certificates: [webhookPair, extenderPair],
    stateDirectory,
    dpuClock,
    async ready(seconds) {
      await Promise.all([...all, ...extenders.pods].map((one) => one.ready(seconds)));
    },
    async stop() {
      await Promise.all(all.map((daemon) => daemon.stop()));
      await webhook.stop();
      await extender.stop();
    },
  };
}

function together(a: Process = {}, b: Process): Process {
  return { nodeArgs: [...(a.nodeArgs ?? []), ...(b.nodeArgs ?? [])], env: { ...a.env, ...b.env } };
}

/** The address of the active extender, as it published it. */
function published({ client }: DemoCluster): number[] {
  const slice = client.get(ENDPOINT_SLICES, NAMESPACE, SERVICES.extender);
  const ports = at(slice, 'ports');
  const port = Array.isArray(ports) ? at(ports[0], 'port') : undefined;
  return typeof port === 'number' ? [port] : [];
}

async function folder(directory: string, name: string): Promise<string> {
  const path = join(directory, name);
  await mkdir(path, { recursive: true });
  return path;
}
