import { setTimeout as delay } from 'node:timers/promises';
import { paced } from '../support/pace.ts';
import { memoryOf, run } from '../support/process.ts';
import { type BenchResult, summary } from '../support/timing.ts';
import { startBenchCluster } from './cluster.ts';

const DAEMONS = ['webhook', 'scheduler-plugin', 'node-agent'] as const;
const ROUNDS = 3;
/** Seconds before a daemon's memory is read. */
const SETTLE = 2;
/** Bounds relative to a process that only listens. */
const BOUNDS = {
  webhook: { start: 8, memory: 3 },
  'scheduler-plugin': { start: 8, memory: 3 },
  'node-agent': { start: 3.5, memory: 2.2 },
} as const;

/** Only node:http, as the base for start-up time and memory. */
const BARE = `require('node:http').createServer().listen(0, '127.0.0.1', () => console.log('{"probePort":1}'))`;

/**
 * Time from the execution of the program until it reports that it serves, and resident memory a moment later, of each
 * bundled daemon relative to a bare Node.js server.
 */
export async function startUpAndMemory(): Promise<BenchResult[]> {
  const cluster = await startBenchCluster();
  const results: BenchResult[] = [];
  try {
    for (const daemon of DAEMONS) {
      const starts: number[] = [];
      const memories: number[] = [];
      for (let round = 0; round < paced(ROUNDS, 2); round++) {
        const bareBegun = performance.now();
        const bare = run(process.execPath, ['-e', BARE]);
        await bare.line(() => true);
        const bareMillis = performance.now() - bareBegun;
        const one = await cluster.start(daemon);
        starts.push(one.startMilliseconds / bareMillis);
        await delay(SETTLE * 1000);
        memories.push(memoryOf(one.pid).rss / memoryOf(bare.pid).rss);
        await Promise.all([one.stop(), bare.stop()]);
      }
      results.push(summary(`${daemon}.start-up-over-bare-node`, starts, { most: BOUNDS[daemon].start }));
      results.push(summary(`${daemon}.rss-over-bare-node`, memories, { most: BOUNDS[daemon].memory }));
    }
    return results;
  } finally {
    await cluster.stop();
  }
}
