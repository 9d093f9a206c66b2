import { createFixtureCluster, type FixtureCluster } from '../../test/cli/cluster-fixture.ts';
import { paced } from '../support/pace.ts';
import { bundle } from '../support/process.ts';
import { type BenchResult, summary } from '../support/timing.ts';
import { measure } from './measure.ts';

const NODES = 1000;
const ROUNDS = 7;
/** Of processors’ time, against a Node.js that does nothing. */
const BOUNDS = { explain: 5, version: 1.4, completion: 1.4 } as const;

const PROGRAM = bundle('plumbline.mjs');

/** Cost of `plumbline` for its user: the start alone, and an explanation over 1,000 nodes on the sandbox. */
export async function explainOverBareNode(): Promise<BenchResult[]> {
  const cluster = await createFixtureCluster();
  try {
    await fill(cluster);
    const env = { ...process.env, KUBECONFIG: cluster.kubeconfig };
    const explain = () => measure([PROGRAM, 'explain', 'pod', 'waits'], env);
    const version = () => measure([PROGRAM, '--version'], env);
    const complete = () => measure([PROGRAM, '__complete', 'explain', '--'], env);
    const bare = () => measure(['-e', '0'], env);
    // The first runs find nothing in the file cache.
    for (const one of [bare, version, complete, explain]) await one();
    const walls: number[] = [];
    const explained: number[] = [];
    const started: number[] = [];
    const completed: number[] = [];
    const millis: number[] = [];
    let before = await bare();
    for (let round = 0; round < paced(ROUNDS); round++) {
      const own = await explain();
      const start = await version();
      const completion = await complete();
      const after = await bare();
      // A bare Node.js takes so little that one run alone varies by a third.
      const base = (before.processor + after.processor) / 2;
      before = after;
      started.push(start.processor / base);
      completed.push(completion.processor / base);
      millis.push(completion.processor * 1000);
      walls.push(own.wall);
      explained.push(own.processor / base);
    }
    const sorted = walls.sort((a, b) => a - b).map((wall) => wall.toFixed(2));
    console.error(
      `explain with ${NODES} nodes took ${sorted[sorted.length >> 1]} s (${sorted[0]} to ${sorted.at(-1)})`,
    );
    console.error(
      `completion took ${Math.min(...millis).toFixed(0)} to ${Math.max(...millis).toFixed(0)} ms of processor time`,
    );
    return [
      summary('cli.completion-over-bare-node', completed, { most: BOUNDS.completion }),
      summary('cli.version-over-bare-node', started, { most: BOUNDS.version }),
      summary(`cli.explain-${NODES}-nodes-over-bare-node`, explained, { most: BOUNDS.explain }),
    ];
  } finally {
    await cluster.stop();
  }
}

/** Nodes with different assigned CPUs, so that few are equal, and a pod that fits none of them. */
async function fill(cluster: FixtureCluster): Promise<void> {
  for (let i = 0; i < NODES; i++) {
    const cpus = Array.from({ length: 14 }, (_, bit) => ((i >> bit) & 1 ? [8 + (bit % 8), 24 + (bit % 8)] : [])).flat();
    const assignments = [
      { podUID: `near-${i}`, container: 'compute', cpus: '1-4,17-20' },
      ...(cpus.length === 0 ? [] : [{ podUID: `far-${i}`, container: 'compute', cpus: [...new Set(cpus)].join(',') }]),
    ];
    await cluster.node(`worker-${i}`, { unschedulable: i % 50 === 0, report: { assignments } });
  }
  await cluster.pod('waits', {
    cpus: 10,
    resources: { 'physnet.plumbline.dev/physnet0': '1' },
    status: { conditions: [{ type: 'PodScheduled', status: 'False', message: `0/${NODES} nodes are available` }] },
  });
}
