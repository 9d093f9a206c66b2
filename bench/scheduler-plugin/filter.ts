import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { build } from 'esbuild';
import { shippedNodeOptions } from '../../test/support/shipped.ts';
import { type Client, createClient, quantile } from '../support/http-load.ts';
import { paced } from '../support/pace.ts';
import { type Running, root, run, runScript } from '../support/process.ts';
import { type BenchResult, summary } from '../support/timing.ts';
import { filterBody, renumberPod } from './nodes.ts';

const NAMES = 5000;
const MANY_NAMES = 15_000;
const ROUNDS = 15;
const CALLS = 60;
/** Calls of a round before it is the other server's turn: both have to share each slow moment of the machine. */
const CALLS_IN_TURN = 6;
const WARM_UP = 400;
/** Number of different orders of the names, so that successive calls differ. */
const BODIES = 8;
/** Calls under updates, and node updates a second. */
const LOAD_CALLS = 20_000;
const UPDATES = 1000;
const TAIL_ROUNDS = 3;

const BOUNDS = { plain: 0.6, echo: 0.8, tail: 6, growth: 3.6, bytesPerNode: 2048 } as const;

interface Server {
  readonly line: Record<string, unknown>;
  readonly running: Running;
  readonly client: Client;
  stop(): Promise<void>;
}

async function serve(running: Running, path: string): Promise<Server> {
  const line = await running.line((found) => typeof found['port'] === 'number');
  const client = createClient({ port: Number(line['port']), path });
  return {
    line,
    running,
    client,
    async stop() {
      client.close();
      await running.stop();
    },
  };
}

let bundled: Promise<string> | undefined;

/** The measured program bundled into one file, as daemons are shipped. */
async function bundle(): Promise<string> {
  const outfile = join(await mkdtemp(join(tmpdir(), 'plumbline-bench-')), 'serve.cjs');
  await build({
    entryPoints: [`${root}/bench/scheduler-plugin/serve.ts`],
    outfile,
    bundle: true,
    platform: 'node',
    format: 'cjs',
    minifySyntax: true,
    logLevel: 'error',
  });
  return outfile;
}

async function extender(nodes: number, updates = 0): Promise<Server> {
  bundled ??= bundle();
  const args = ['--expose-gc', await bundled, String(nodes), String(updates)];
  return serve(run(process.execPath, args, shippedNodeOptions('scheduler-plugin')), '/filter');
}

let pods = 0;

async function load({ client }: Server, bodies: readonly Buffer[], calls: number, first = 0): Promise<number[]> {
  const millis: number[] = [];
  for (let i = first; i < first + calls; i++) {
    const body = bodies[i % bodies.length]!;
    renumberPod(body, pods++);
    millis.push(...(await client.load({ calls: 1, concurrency: 1, body })));
  }
  return millis;
}

/** The median call of one server relative to that of another, in turns in one run. */
async function compare(name: string, most: number, mine: Server, theirs: Server, bodies: [Buffer[], Buffer[]]) {
  await load(mine, bodies[0], paced(WARM_UP, 150));
  await load(theirs, bodies[1], paced(WARM_UP, 150));
  const ratios: number[] = [];
  for (let round = 0; round < paced(ROUNDS); round++) {
    const [measured, reference]: [number[], number[]] = [[], []];
    for (let call = 0; call < CALLS; call += CALLS_IN_TURN) {
      measured.push(...(await load(mine, bodies[0], CALLS_IN_TURN, call)));
      reference.push(...(await load(theirs, bodies[1], CALLS_IN_TURN, call)));
    }
    ratios.push(quantile(measured, 0.5) / quantile(reference, 0.5));
  }
  return summary(name, ratios, { most });
}

const bodiesOf = (names: number) => Array.from({ length: BODIES }, (_, seed) => filterBody(names, seed));

/**
 * A filter call over 5,000 node names, end to end, relative to a plain implementation and to an echo with node:http,
 * each in a separate process.
 */
export async function filterOverOthers(): Promise<BenchResult[]> {
  const mine = await extender(NAMES);
  const plain = await serve(runScript('bench/scheduler-plugin/plain.ts', [String(NAMES)]), '/filter');
  const echo = await serve(runScript('bench/support/echo-server.ts'), '/');
  try {
    const bodies = bodiesOf(NAMES);
    const name = 'scheduler-plugin.filter-5000-names-over';
    return [
      await compare(`${name}-plain`, BOUNDS.plain, mine, plain, [bodies, bodies]),
      await compare(`${name}-echo`, BOUNDS.echo, mine, echo, [bodies, bodies]),
      summary('scheduler-plugin.bytes-per-node', [Number(mine.line['bytesPerNode'])], { most: BOUNDS.bytesPerNode }),
    ];
  } finally {
    await Promise.all([mine.stop(), plain.stop(), echo.stop()]);
  }
}

/** Three times the names in about three times the time. */
export async function filterGrowth(): Promise<BenchResult[]> {
  const many = await extender(MANY_NAMES);
  const few = await extender(NAMES);
  try {
    const bodies: [Buffer[], Buffer[]] = [bodiesOf(MANY_NAMES), bodiesOf(NAMES)];
    return [await compare('scheduler-plugin.filter-15000-over-5000', BOUNDS.growth, many, few, bodies)];
  } finally {
    await Promise.all([many.stop(), few.stop()]);
  }
}

/** The 99th percentile of 20,000 calls relative to their median, while 1,000 nodes per second report a change. */
export async function filterTail(): Promise<BenchResult[]> {
  const server = await extender(NAMES, UPDATES);
  try {
    const bodies = bodiesOf(NAMES);
    await load(server, bodies, WARM_UP);
    const ratios: number[] = [];
    for (let round = 0; round < paced(TAIL_ROUNDS, 1); round++) {
      const millis = await load(server, bodies, paced(LOAD_CALLS));
      ratios.push(quantile(millis, 0.99) / quantile(millis, 0.5));
    }
    return [summary('scheduler-plugin.filter-p99-over-p50', ratios, { most: BOUNDS.tail })];
  } finally {
    await server.stop();
  }
}
