import { VIRTUAL_MACHINE_INSTANCES } from '../../sandbox/api-server/built-in-types.ts';
import type { JsonRecord } from '../../sandbox/objects.ts';
import { createFixtureCluster, type FixtureCluster } from '../../test/cli/cluster-fixture.ts';
import { paced } from '../support/pace.ts';
import { bundle } from '../support/process.ts';
import { type BenchResult, summary } from '../support/timing.ts';
import { measure } from './measure.ts';

const NODES = 5000;
const VMS = 10;
const ROUNDS = 5;
const DRAINED = 'worker-0';
/** Seconds of processor time. */
const BOUND = 3;

/** `plumbline simulate --without` of a node with ten VMs, among 5,000 nodes of which few are alike. */
export async function drainOfLargeCluster(): Promise<BenchResult[]> {
  const cluster = await createFixtureCluster();
  try {
    await fill(cluster);
    const env = { ...process.env, KUBECONFIG: cluster.kubeconfig };
    const simulate = () => measure([bundle('plumbline.mjs'), 'simulate', '--without', DRAINED, '-o', 'json'], env);
    await simulate();
    const seconds: number[] = [];
    const walls: number[] = [];
    for (let round = 0; round < paced(ROUNDS); round++) {
      const { processor, wall } = await simulate();
      seconds.push(processor);
      walls.push(wall);
    }
    console.error(`simulate --without with ${NODES} nodes took ${walls.map((wall) => wall.toFixed(2)).join(', ')} s`);
    return [summary(`cli.without-${NODES}-nodes-seconds`, seconds, { most: BOUND })];
  } finally {
    await cluster.stop();
  }
}

async function fill(cluster: FixtureCluster): Promise<void> {
  const names = Array.from({ length: VMS }, (_, index) => `vm-${index}`);
  for (let i = 0; i < NODES; i++) {
    const far = Array.from({ length: 12 }, (_, bit) => ((i >> bit) & 1 ? [8 + (bit % 7), 24 + (bit % 7)] : [])).flat();
    const own = i === 0 ? [] : [...new Set(far)];
    const assignments = own.length === 0 ? [] : [{ podUID: `far-${i}`, container: 'compute', cpus: own.join(',') }];
    await cluster.node(`worker-${i}`, { unschedulable: i % 50 === 1, report: { assignments } });
  }
  for (const name of names) {
    const instance = await cluster.sandbox.client.create(VIRTUAL_MACHINE_INSTANCES, {
      apiVersion: 'kubevirt.io/v1',
      kind: 'VirtualMachineInstance',
      metadata: { name, namespace: 'default' },
      spec: { evictionStrategy: 'LiveMigrate', domain: {} } as JsonRecord,
      status: { phase: 'Running', nodeName: DRAINED, conditions: [{ type: 'LiveMigratable', status: 'True' }] },
    });
    const { uid = '' } = instance.metadata;
    await cluster.pod(`virt-launcher-${name}`, {
      cpus: 4,
      node: DRAINED,
      labels: { 'kubevirt.io': 'virt-launcher', 'kubevirt.io/created-by': uid },
      ownerReferences: [{ apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachineInstance', name, uid, controller: true }],
      status: { phase: 'Running' },
    });
  }
}
