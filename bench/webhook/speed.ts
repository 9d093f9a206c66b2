import { shippedNodeOptions } from '../../test/support/shipped.ts';
import { cpuSecondsOf, memoryOf, type Running, root, run, runScript } from '../support/process.ts';
import { serving } from '../support/serving.ts';
import { type BenchResult, paced, summary } from '../support/timing.ts';
import { CONCURRENCY, openReviewLoad, startWarmWebhook, type WarmWebhook } from './reviews.ts';

const CALLS = 1500;
const WARM_UP = 6000;

/**
 * Reviews per second of processor time of the webhook, with look-ups in warm caches, relative to a plain express app that
 * makes the same decision with all facts at hand.
 */
export function reviewsOverExpress(): Promise<BenchResult> {
  return reviewsOver('bench/webhook/same-decision.ts', 'webhook.reviews-over-express', 0.8);
}

/** The same, relative to an express app that makes no decision: it adds a CPU to the pod. */
export function reviewsOverMinimalExpress(): Promise<BenchResult> {
  return reviewsOver('bench/webhook/express-reference.ts', 'webhook.reviews-over-minimal-express', 0.5);
}

async function reviewsOver(script: string, name: string, least: number): Promise<BenchResult> {
  const webhook = await startWarmWebhook();
  const reference = runScript(script, [], {
    ...serving(webhook.cluster.certificate),
    ...shippedNodeOptions('webhook'),
  });
  try {
    return summary(name, await ratiosInTurns(webhook, reference, paced(15, 5)), { least });
  } finally {
    await Promise.all([reference.stop(), webhook.stop()]);
  }
}

/** Names of the results of peerPepr. */
const PEPR_NAMES = ['webhook.reviews-over-pepr', 'webhook.rss-over-pepr-same-run'];

/**
 * Reviews per second of processor time relative to a Pepr module that makes the same change without lookups, and
 * resident memory relative to Pepr's after the same reviews. PLUMBLINE_PEPR names a directory with the npm package pepr
 * in node_modules; without it nothing is measured.
 */
export async function peerPepr(): Promise<BenchResult[]> {
  const directory = process.env['PLUMBLINE_PEPR'];
  if (!directory) {
    console.error(`# ${PEPR_NAMES.join(', ')}: skipped, PLUMBLINE_PEPR names no directory with the npm package pepr`);
    return [];
  }
  const webhook = await startWarmWebhook();
  const pepr = run(process.execPath, [`${root}/bench/webhook/pepr-reference.cjs`], {
    PLUMBLINE_PEPR: directory,
    ...serving(webhook.cluster.certificate),
  });
  try {
    const memory: number[] = [];
    const ratios = await ratiosInTurns(webhook, pepr, paced(9), () => {
      memory.push(memoryOf(webhook.process.pid).rss / memoryOf(pepr.pid).rss);
    });
    const [speed = '', rss = ''] = PEPR_NAMES;
    return [summary(speed, ratios, { least: 1 }), summary(rss, memory, { most: 1 })];
  } finally {
    await Promise.all([pepr.stop(), webhook.stop()]);
  }
}

/**
 * Processor time of the reference over that of the webhook, in each round: the same pod over TLS 1.3 with keep-alive, four
 * at a time. Processor time is used because both are busy on one thread. Both run at once because the speed of a shared
 * machine varies.
 */
async function ratiosInTurns(
  { process: measured, load, body, cluster: { ca } }: WarmWebhook,
  reference: Running,
  rounds: number,
  afterRound: () => void = () => undefined,
): Promise<number[]> {
  const { port, path = '/mutate-pods' } = await reference.line((line) => typeof line['port'] === 'number');
  const base = await openReviewLoad({ port: Number(port), path: String(path), ca }, body, CONCURRENCY);
  // Warms up the compiler of both.
  for (const each of [load, base]) await each.run(paced(WARM_UP, 3000));
  const ratios: number[] = [];
  for (let round = 0; round < rounds; round++) {
    const [webhookSeconds, referenceSeconds] = await Promise.all([
      secondsFor(measured.pid, () => load.run(CALLS)),
      secondsFor(reference.pid, () => base.run(CALLS)),
    ]);
    ratios.push(referenceSeconds / webhookSeconds);
    afterRound();
  }
  base.close();
  return ratios;
}

/** Processor seconds of a process during some work. */
async function secondsFor(pid: number, work: () => Promise<unknown>): Promise<number> {
  const before = cpuSecondsOf(pid);
  await work();
  return cpuSecondsOf(pid) - before;
}
