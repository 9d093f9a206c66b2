import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { VIRTUAL_MACHINE_INSTANCES } from '../../sandbox/api-server/built-in-types.ts';
import type { JsonRecord } from '../../sandbox/objects.ts';
import { createFixtureCluster, type FixtureCluster } from '../../test/cli/cluster-fixture.ts';
import { vmiOwner } from '../../test/support/vmi-owner.ts';
import { bundle } from '../support/process.ts';
import { type BenchResult, paced, summary } from '../support/timing.ts';

const EXPLAIN_NODES = 1000;
const EXPLAIN_ROUNDS = 7;
/** Of processors’ time, against a Node.js that does nothing. */
const BOUNDS = { explain: 8, version: 1.4, completion: 1.4 } as const;

const PROGRAM = bundle('plumbline.mjs');

/** Cost of `plumbline` for its user: the start alone, and an explanation over 1,000 nodes on the sandbox. */
export async function explainOverBareNode(): Promise<BenchResult[]> {
  const cluster = await createFixtureCluster();
  try {
    await fillForExplain(cluster);
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
    for (let round = 0; round < paced(EXPLAIN_ROUNDS); round++) {
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
      `explain with ${EXPLAIN_NODES} nodes took ${sorted[sorted.length >> 1]} s (${sorted[0]} to ${sorted.at(-1)})`,
    );
    console.error(
      `completion took ${Math.min(...millis).toFixed(0)} to ${Math.max(...millis).toFixed(0)} ms of processor time`,
    );
    return [
      summary('cli.completion-over-bare-node', completed, { most: BOUNDS.completion }),
      summary('cli.version-over-bare-node', started, { most: BOUNDS.version }),
      summary(`cli.explain-${EXPLAIN_NODES}-nodes-over-bare-node`, explained, { most: BOUNDS.explain }),
    ];
  } finally {
    await cluster.stop();
  }
}

/** Nodes with different assigned CPUs, so that few are equal, and a pod that fits none of them. */
async function fillForExplain(cluster: FixtureCluster): Promise<void> {
  for (let i = 0; i < EXPLAIN_NODES; i++) {
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
    status: {
      conditions: [{ type: 'PodScheduled', status: 'False', message: `0/${EXPLAIN_NODES} nodes are available` }],
    },
  });
}

const DRAIN_NODES = 5000;
const DRAINED_VMS = 10;
const DRAIN_ROUNDS = 5;
const DRAINED = 'worker-0';
/** Seconds of processor time. */
const MAX_DRAIN_SECONDS = 3;

/** `plumbline simulate --without` of a node with ten VMs, among 5,000 nodes of which few are alike. */
export async function drainOfLargeCluster(): Promise<BenchResult[]> {
  const cluster = await createFixtureCluster();
  try {
    await fillForDrain(cluster);
    const env = { ...process.env, KUBECONFIG: cluster.kubeconfig };
    const simulate = () => measure([bundle('plumbline.mjs'), 'simulate', '--without', DRAINED, '-o', 'json'], env);
    await simulate();
    const seconds: number[] = [];
    const walls: number[] = [];
    for (let round = 0; round < paced(DRAIN_ROUNDS); round++) {
      const { processor, wall } = await simulate();
      seconds.push(processor);
      walls.push(wall);
    }
    console.error(
      `simulate --without with ${DRAIN_NODES} nodes took ${walls.map((wall) => wall.toFixed(2)).join(', ')} s`,
    );
    return [summary(`cli.without-${DRAIN_NODES}-nodes-seconds`, seconds, { most: MAX_DRAIN_SECONDS })];
  } finally {
    await cluster.stop();
  }
}

async function fillForDrain(cluster: FixtureCluster): Promise<void> {
  const names = Array.from({ length: DRAINED_VMS }, (_, index) => `vm-${index}`);
  for (let i = 0; i < DRAIN_NODES; i++) {
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
      ownerReferences: [vmiOwner(name, uid)],
      status: { phase: 'Running' },
    });
  }
}

/**
 * Seconds of a process: elapsed time, which other work on the machine increases, and processor time.
 * @throws Error if it fails
 */
function measure(args: readonly string[], env: NodeJS.ProcessEnv): Promise<{ wall: number; processor: number }> {
  return new Promise((resolve, reject) => {
    const begun = performance.now();
    const all = ['--require', join(import.meta.dirname, 'usage.cjs'), ...args];
    execFile(process.execPath, all, { env, maxBuffer: 16 * 1024 * 1024 }, (error, _, stderr) => {
      if (error) return reject(new Error(stderr || error.message));
      const { processorTime } = JSON.parse(stderr.trim().split('\n').at(-1) ?? '') as { processorTime: number };
      resolve({ wall: (performance.now() - begun) / 1000, processor: processorTime / 1e6 });
    });
  });
}
