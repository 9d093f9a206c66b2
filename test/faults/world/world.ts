import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type ClusterOptions, createEmbeddedCluster, type DemoCluster } from '../../../cli/demo/cluster.ts';
import { openVswitch, type SwitchProcesses, threadCpus } from '../../../cli/demo/open-vswitch.ts';
import { localnet } from '../../../cli/demo/vms.ts';
import { NETWORK_ATTACHMENT_DEFINITIONS } from '../../../sandbox/api-server/built-in-types.ts';
import { startRealOvs } from '../../node-agent/ovs-stage.ts';
import { createRealCluster } from '../../real/demo/real-cluster-stage.ts';
import { switchOn } from '../../real/webhook/installed-stage.ts';
import { dist, root } from '../../support/bundles.ts';
import { createNamespaces, untilReported } from '../../support/demo-cluster.ts';
import { isInstalled } from '../../support/parts.ts';
import { startObserver } from '../observer/observer.ts';
import { serverOf, startApiGate } from './api-gate.ts';
import { type Process, startDaemons } from './daemons.ts';
import { NODES, VSWITCH_NODE } from './nodes.ts';

export type Ground = 'sandbox' | 'real';

export const NAMESPACE = 'demo';

export type World = Awaited<ReturnType<typeof startWorld>>;

export interface WorldOptions {
  /** Common arguments of all daemons, in addition to their own. */
  readonly process?: Process | undefined;
  readonly from?: string | undefined;
  /** A separate Open vSwitch of the world instead of its stand-ins, if installed. */
  readonly openVswitch?: boolean | undefined;
}

/** Seconds within which all daemons must be ready. */
const READY = 60;

/** A cluster with Plumbline, every daemon a process, and the means to break it. */
export async function startWorld(ground: Ground, options: WorldOptions = {}) {
  const { process, from = dist } = options;
  const directory = await mkdtemp(join(tmpdir(), 'plumbline-f-'));
  const clusterOptions: ClusterOptions = {
    directory,
    nodes: NODES,
    packageRoot: root,
    // Calls of daemons that a scenario has killed.
    onFault: () => undefined,
  };
  const real = ground === 'real' ? createRealCluster(clusterOptions, { electedSchedulers: true }) : undefined;
  const cluster: DemoCluster = real ?? createEmbeddedCluster(clusterOptions);
  const stops: (() => Promise<void>)[] = [() => cluster.stop()];
  const stop = async (keep: boolean) => {
    for (const one of stops.toReversed()) await one();
    if (!keep) await rm(directory, { recursive: true, force: true });
  };
  try {
    await cluster.start();
    await createSurroundings(cluster);
    await cluster.prepare();
    const ovs = await switchOf(directory, options);
    stops.push(() => ovs.stop());
    const gate = await startApiGate(await serverOf(await cluster.kubeconfig({ kind: 'admin' })));
    stops.push(() => gate.stop());
    const daemons = await startDaemons({
      cluster,
      gate,
      ovs,
      directory,
      dist: from,
      ...(process && { process }),
      ...(real && { startScheduler: real.startElectedScheduler }),
    });
    stops.push(() => daemons.stop());
    await daemons.ready(READY);
    // As in a cluster with a release in which the webhook did not switch itself on.
    if (real !== undefined && from !== dist) await switchOn(real.plane);
    await cluster.wire(daemons.ports);
    await cluster.called?.();
    await untilReported(cluster, NODES);
    const observer = startObserver(cluster.client, observed(cluster, ovs), NAMESPACE);
    stops.push(async () => observer.stop());
    return {
      ground,
      directory,
      cluster,
      /** The control plane's own processes; undefined on the sandbox. */
      real,
      gate,
      daemons,
      observer,
      ovs,
      node: (name: string) => cluster.node(name),
      stop,
    };
  } catch (error) {
    await stop(true);
    throw new Error(`the cluster did not come up (${directory}): ${String(error)}`, { cause: error });
  }
}

async function createSurroundings({ client }: DemoCluster): Promise<void> {
  await createNamespaces({ client }, NAMESPACE, 'ovn-kubernetes');
  for (const name of ['physnet0', 'physnet1']) {
    await client.create(NETWORK_ATTACHMENT_DEFINITIONS, localnet(name, name));
  }
}

/** Never the machine's own Open vSwitch, which others may use. */
async function switchOf(directory: string, { openVswitch: real = false }: WorldOptions): Promise<SwitchProcesses> {
  const folder = join(directory, 'vswitch');
  await mkdir(folder, { recursive: true });
  if (!real || !isInstalled('openVswitch')) return openVswitch(dist, folder, { standIns: true });
  const { rundir, vswitchd, ovsdb, stop } = await startRealOvs(folder);
  const pids = [vswitchd.pid ?? 0, ovsdb.pid ?? 0];
  return { kind: 'Open vSwitch', rundir, pids, threads: () => threadCpus(pids), stop };
}

function observed(cluster: DemoCluster, ovs: SwitchProcesses) {
  return NODES.map(({ name, physnets }) => {
    const { host, kubeletDirectory } = cluster.node(name);
    const cores = host.cores.map((core) => core.toArray());
    const beside = Object.entries(physnets).map(([physnet, cells]) => [
      physnet,
      host.cells.filter(({ id }) => cells.includes(id)).flatMap(({ cpus }) => cpus.toArray()),
    ]);
    return {
      name,
      kubeletDirectory,
      cores,
      reserved: cores[0] ?? [],
      physnets: Object.fromEntries(beside) as Record<string, number[]>,
      ...(name === VSWITCH_NODE && { vswitchPids: () => ovs.pids }),
    };
  });
}
