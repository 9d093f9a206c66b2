import type { BenchSettings } from '../support/settings.ts';
import { type BenchResult, summary } from '../support/timing.ts';
import { FREE_CPUS, startRaceCluster } from './cluster.ts';
import { load, type Outcome, podOf } from './load.ts';

const [NODES, PODS] = [50, 1000];
/** Number of free CPUs on each node: room for one VM and one pod, or three pods. */
const LEFT = 6;

/**
 * Two schedulers on the same nearly full nodes: Plumbline's (1,000 VMs of 4 CPUs) and the cluster's own (1,000 pods of
 * 2), both at full speed on a real control plane. Counts pods that kubelets refuse because the other scheduler was
 * first; each refused pod is replaced, as by its owner. Fails if a pod never runs.
 */
export async function races(_settings: BenchSettings): Promise<BenchResult[]> {
  const cluster = await startRaceCluster(NODES, () => undefined);
  try {
    for (let i = 0; i < NODES; i++) {
      const full = podOf(`full-${i}`, '', FREE_CPUS - LEFT, `node-${i}`);
      await cluster.client.create('/api/v1/namespaces/default/pods', full);
    }
    const kinds = [
      { name: 'vm', schedulerName: 'plumbline-scheduler', cpus: 4, pods: PODS, atATime: Math.ceil(NODES * 0.8) },
      { name: 'pod', schedulerName: 'default-scheduler', cpus: 2, pods: PODS, atATime: Math.ceil(NODES * 1.2) },
    ];
    const outcomes = await load(cluster.client, kinds, (ran) => {
      if (ran % 200 === 0) console.error(`# ${ran} of ${PODS * 2} have run`);
    });
    console.error(`# ${JSON.stringify(outcomes)}`);
    const perThousand = ({ rejected, ran }: Outcome) =>
      (Object.values(rejected).reduce((sum, count) => sum + count, 0) / ran) * 1000;
    const [vms, others] = outcomes as [Outcome, Outcome];
    return [
      summary('races.vms-rejected-per-1000', [perThousand(vms)], { most: 50 }),
      summary('races.ordinary-pods-rejected-per-1000', [perThousand(others)], { most: 50 }),
      summary('races.rejections-in-a-row', [Math.max(vms.mostInARow, others.mostInARow)], { most: 3 }),
    ];
  } finally {
    await cluster.stop();
  }
}
