import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { DemoNode } from '../../cli/demo/nodes.ts';
import { install } from '../../cli/demo/plumbline.ts';
import { until } from '../../cli/demo/until.ts';
import { NODE_TOPOLOGIES, NODES } from '../../sandbox/api-server/built-in-types.ts';
import { aggregation } from '../real/aggregation.ts';
import { namespaceOf } from '../real/control-plane.ts';
import { createRealCluster, type RealCluster } from '../real/demo/real-cluster.ts';
import { buildOnce, dist, root } from '../support/bundles.ts';
import { type Machines, machinesOn, PATIENCE } from './machines.ts';
import { createRealKubeVirt } from './real-kubevirt.ts';
import { createSwitchablePort, type SwitchablePort } from './switchable-port.ts';

/** A real control plane with KubeVirt and Plumbline, installed by its manifests, on emulated nodes. */
export interface KubeVirtStage extends Machines {
  readonly cluster: RealCluster;
  /** The connection from the API server to the webhook. */
  readonly wayToWebhook: SwitchablePort;
  stop(): Promise<void>;
}

/** Registers its tests; the stage exists when they run. */
export type Cases = (stage: () => KubeVirtStage) => void;

/** Runs guests as processes with real threads, so that the agent can pin them. */
export const PINNING_NODE = 'smt1';

/**
 * Two nodes with two threads per core, so that VMs can migrate, and one with one thread per core for VMs with CPU
 * masks.
 */
const NODES_OF_STAGE: readonly DemoNode[] = [
  { name: 'smt2-a', host: oneSocket(12, 2), physnets: { physnet0: [0] }, about: '12 cores x 2 threads' },
  { name: 'smt2-b', host: oneSocket(12, 2), physnets: { physnet0: [0] }, about: '12 cores x 2 threads' },
  {
    name: PINNING_NODE,
    host: oneSocket(12, 1),
    reserved: '11',
    physnets: {},
    guestProgram: join(dist, 'qemu-stand-in.cjs'),
    cpuManagerPolicyOptions: {},
    about: '12 cores x 1 thread',
  },
];

function oneSocket(cores: number, threads: number): DemoNode['host'] {
  const sibling = (core: number) => Array.from({ length: threads }, (_, thread) => core + thread * cores).join(',');
  return {
    cells: [{ id: 0, cpus: `0-${cores * threads - 1}` }],
    cores: Array.from({ length: cores }, (_, core) => sibling(core)),
  };
}

export async function startKubeVirtStage(): Promise<KubeVirtStage> {
  const nodes = NODES_OF_STAGE;
  buildOnce();
  // Short: unix sockets below it may have paths of at most 107 bytes.
  const directory = mkdtempSync(join(tmpdir(), 'kv-'));
  const undo: (() => Promise<unknown>)[] = [async () => rmSync(directory, { recursive: true, force: true })];
  const stop = async () => {
    for (const one of undo.toReversed()) await one();
  };
  try {
    const apiServerArgs = aggregation(directory);
    const onFault = (error: unknown) => console.error(error);
    const cluster = createRealCluster(
      { directory, nodes, packageRoot: root, onFault },
      { kubeVirt: createRealKubeVirt(), apiServerArgs },
    );
    await cluster.start();
    undo.push(() => cluster.stop());
    await cluster.plane.create(...['ovn-kubernetes', 'vms'].map(namespaceOf));
    const noSwitch = { rundir: join(directory, 'no-ovs'), enabler: join(directory, 'no-ovs', 'enabler') };
    const settings = { cluster, nodes, ovs: noSwitch, ovsNode: '', directory, dist };
    const plumbline = await install(settings);
    undo.push(() => plumbline.stop());
    await plumbline.ready();
    const wayToWebhook = await createSwitchablePort((await plumbline.webhook.ports()).port);
    undo.push(wayToWebhook.stop);
    await cluster.wire({ webhook: wayToWebhook.port, extender: await plumbline.extenderPort() });
    for (const { name, physnets } of nodes) await reported(cluster, name, Object.keys(physnets));
    return { ...machinesOn(cluster), cluster, wayToWebhook, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

async function reported({ client }: RealCluster, name: string, physnets: readonly string[]): Promise<void> {
  await until(
    `the report of ${name}`,
    PATIENCE,
    () => client.get(NODE_TOPOLOGIES, undefined, name)?.status ?? undefined,
  );
  for (const physnet of physnets) {
    await until(`${name} to have ${physnet}`, PATIENCE, () => {
      const amount = client.get(NODES, undefined, name)?.status?.allocatable?.[`physnet.plumbline.dev/${physnet}`];
      return amount === undefined || amount === '0' ? undefined : amount;
    });
  }
}
