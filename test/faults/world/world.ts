import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type ClusterOptions, createEmbeddedCluster, type DemoCluster } from '../../../cli/demo/cluster.ts';
import { localnet } from '../../../cli/demo/objects.ts';
import { type OpenVswitch, openVswitch } from '../../../cli/demo/open-vswitch.ts';
import { until } from '../../../cli/demo/until.ts';
import {
  NAMESPACES,
  NETWORK_ATTACHMENT_DEFINITIONS,
  NODES as NODE_TYPE,
} from '../../../sandbox/api-server/built-in-types.ts';
import type { EmulatedNode } from '../../../sandbox/cluster/emulated-node.ts';
import { createRealCluster, type RealCluster } from '../../real/demo/real-cluster.ts';
import { dist, root } from '../../support/bundles.ts';
import { type Observer, startObserver } from '../observer/observer.ts';
import { type ApiGate, startApiGate } from './api-gate.ts';
import { type Daemons, type Process, startDaemons } from './daemons.ts';
import { NODES, VSWITCH_NODE } from './nodes.ts';
import { serverOf } from './through-gate.ts';

/** Where scenarios run: the embedded cluster, or a real control plane. */
export type Ground = 'sandbox' | 'real';

/** Whose VMs are created. */
export const NAMESPACE = 'demo';

/** A cluster with Plumbline in it, every daemon a process, and the means to break it. */
export interface World {
  readonly ground: Ground;
  readonly directory: string;
  readonly cluster: DemoCluster;
  /** The control plane's own processes; undefined on the sandbox. */
  readonly real: RealCluster | undefined;
  readonly gate: ApiGate;
  readonly daemons: Daemons;
  readonly observer: Observer;
  node(name: string): EmulatedNode;
  /** Errors of the cluster's own parts. */
  readonly faults: readonly string[];
  /** @param keep whether the logs stay */
  stop(keep: boolean): Promise<void>;
}

/**
 * Starts it and waits until every daemon is ready and every network is advertised.
 * @param process what all daemons are started with beside their own
 */
export async function startWorld(ground: Ground, process?: Process): Promise<World> {
  const directory = await mkdtemp(join(tmpdir(), 'plumbline-f-'));
  const faults: string[] = [];
  const options: ClusterOptions = {
    directory,
    nodes: NODES,
    packageRoot: root,
    scheduler: 'own',
    onFault: (error) => void (faults.length < 1000 && faults.push(String(error))),
  };
  const real = ground === 'real' ? createRealCluster(options) : undefined;
  const cluster: DemoCluster = real ?? createEmbeddedCluster(options);
  const stops: (() => Promise<void>)[] = [() => cluster.stop()];
  const stop = async (keep: boolean) => {
    for (const one of stops.toReversed()) await one();
    if (!keep) await rm(directory, { recursive: true, force: true });
  };
  try {
    await cluster.start();
    await createSurroundings(cluster);
    await cluster.prepare();
    const ovs = await standIns(directory);
    stops.push(() => ovs.stop());
    const server = await serverOf(await cluster.kubeconfig({ kind: 'admin' }));
    const gate = await startApiGate(server.url, server.ca);
    stops.push(() => gate.stop());
    const daemons = await startDaemons({ cluster, gate, ovs, directory, dist, ...(process && { process }) });
    stops.push(() => daemons.stop());
    await daemons.ready(30);
    await cluster.wire(daemons.services);
    await advertised(cluster);
    const observer = startObserver(cluster.client, observed(cluster, ovs), NAMESPACE);
    stops.push(async () => observer.stop());
    return {
      ground,
      directory,
      cluster,
      real,
      gate,
      daemons,
      observer,
      node: (name) => cluster.node(name),
      faults,
      stop,
    };
  } catch (error) {
    await stop(true);
    throw new Error(`the cluster did not come up (${directory}): ${String(error)}`, { cause: error });
  }
}

async function createSurroundings({ client }: DemoCluster): Promise<void> {
  for (const name of [NAMESPACE, 'ovn-kubernetes']) {
    await client.create(NAMESPACES, { apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
  }
  for (const name of ['physnet0', 'physnet1']) {
    await client.create(NETWORK_ATTACHMENT_DEFINITIONS, localnet(name, name));
  }
}

/** Stand-ins in any case: the machine's own Open vSwitch is nobody's to be played with. */
async function standIns(directory: string): Promise<OpenVswitch> {
  const folder = join(directory, 'vswitch');
  await mkdir(folder, { recursive: true });
  return openVswitch(dist, folder, { standIns: true });
}

async function advertised({ client }: DemoCluster): Promise<void> {
  for (const { name, physnets } of NODES) {
    for (const physnet of Object.keys(physnets)) {
      await until(`node ${name} to advertise ${physnet}`, 30, () => {
        const amount = client.get(NODE_TYPE, undefined, name)?.status?.allocatable?.[
          `physnet.plumbline.dev/${physnet}`
        ];
        return amount !== undefined && amount !== '0' ? amount : undefined;
      });
    }
  }
}

function observed(cluster: DemoCluster, ovs: OpenVswitch) {
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
