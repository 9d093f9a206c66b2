import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { bundleProgram } from '../../test/support/bundle-program.ts';
import { shippedNodeOptions } from '../../test/support/shipped.ts';
import { createClient } from '../support/http-load.ts';
import { cpuSecondsOf, run } from '../support/process.ts';
import { type BenchResult, paced, quantile, summary } from '../support/timing.ts';
import { filterBody, renumberPod } from './nodes.ts';

const NODES = 5000;
const WARM_UP = 600;
const CALLS = 1000;
const ROUNDS = 3;
/** Number of different orders of the names, so that successive calls differ. */
const BODIES = 8;
/** Pods that are not bound yet, each with its reservations: a burst. */
const IN_FLIGHT = 100;
/** Nodes that report a change in a second: what 20 VMs that start and 20 that end cause. */
const UPDATES = 40;

/** Names in a call, and the most milliseconds of processor time for the slowest hundredth of calls. */
const BOUNDS: readonly (readonly [names: number, milliseconds: number])[] = [
  [500, 5],
  [5000, 20],
];

/** The measured program bundled into one file, as daemons are shipped. */
async function bundled(): Promise<string> {
  const outfile = join(await mkdtemp(join(tmpdir(), 'plumbline-bench-')), 'serve.cjs');
  return bundleProgram('bench/scheduler-plugin/serve.ts', outfile, { minifySyntax: true });
}

/**
 * Processor time of the extender, of all its threads, for a filter call in a cluster of 5,000 nodes, some of which
 * report changes, while a burst of pods is in flight: the slowest hundredth of calls.
 */
export async function filterTime(): Promise<BenchResult[]> {
  const args = [await bundled(), String(NODES), String(UPDATES)];
  const server = run(process.execPath, args, shippedNodeOptions('scheduler-plugin'));
  const { port } = await server.line(({ port }) => typeof port === 'number');
  const client = createClient({ port: Number(port), path: '/filter' });
  let pods = 0;
  const millisecondsOf = async (bodies: readonly Buffer[], calls: number): Promise<number[]> => {
    const milliseconds: number[] = [];
    for (let call = 0; call < calls; call++) {
      const body = bodies[call % bodies.length]!;
      renumberPod(body, pods++ % IN_FLIGHT);
      const before = cpuSecondsOf(server.pid);
      await client.time(body);
      milliseconds.push((cpuSecondsOf(server.pid) - before) * 1000);
    }
    return milliseconds;
  };
  try {
    const results: BenchResult[] = [];
    for (const [names, most] of BOUNDS) {
      const bodies = Array.from({ length: BODIES }, (_, seed) => filterBody(NODES, seed, names));
      await millisecondsOf(bodies, paced(WARM_UP, 300));
      const slowest: number[] = [];
      for (let round = 0; round < paced(ROUNDS, 1); round++) {
        slowest.push(quantile(await millisecondsOf(bodies, paced(CALLS, 500)), 0.99));
      }
      results.push(summary(`scheduler-plugin.filter-${names}-names-p99-ms`, slowest, { most }));
    }
    return results;
  } finally {
    client.close();
    await server.stop();
  }
}
