import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { DemoNode } from '../../cli/demo/nodes.ts';
import { install } from '../../cli/demo/plumbline.ts';
import { until } from '../../cli/demo/until.ts';
import { NODE_TOPOLOGIES, NODES } from '../../sandbox/api-server/built-in-types.ts';
import { aggregation } from '../real/aggregation-fixture.ts';
import { namespaceOf } from '../real/control-plane-stage.ts';
import { createRealCluster, type RealCluster } from '../real/demo/real-cluster-stage.ts';
import { buildOnce, dist, root } from '../support/bundles.ts';
import { createRealKubeVirt } from './kubevirt-stage.ts';
import { type Machines, machinesOn, PATIENCE } from './machines-stage.ts';

/** A real control plane with KubeVirt and Plumbline, installed by its manifests, on emulated nodes. */
export interface KubeVirtStage extends Machines {
  readonly cluster: RealCluster;
  stop(): Promise<void>;
}

/** Registers its tests; the stage exists when they run. */
export type Cases = (stage: () => KubeVirtStage) => void;

/** Of two threads, on one socket. */
const TWELVE_CORES: DemoNode['host'] = {
  cells: [{ id: 0, cpus: '0-23' }],
  cores: Array.from({ length: 12 }, (_, core) => `${core},${core + 12}`),
};

/** Two, so that VMs can migrate. */
const NODES_OF_STAGE: readonly DemoNode[] = [
  { name: 'smt2-a', host: TWELVE_CORES, physnets: { physnet0: [0] }, about: '12 cores x 2 threads' },
  { name: 'smt2-b', host: TWELVE_CORES, physnets: { physnet0: [0] }, about: '12 cores x 2 threads' },
];

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
    const settings = { cluster, nodes, ovs: { rundir: join(directory, 'no-ovs') }, ovsNode: '', directory, dist };
    const plumbline = await install(settings);
    undo.push(() => plumbline.stop());
    await plumbline.ready();
    const { port } = await plumbline.webhook.ports();
    await cluster.wire({ webhook: port, extender: await plumbline.extenderPort() });
    for (const { name, physnets } of nodes) await reported(cluster, name, Object.keys(physnets));
    return { ...machinesOn(cluster), cluster, stop };
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
