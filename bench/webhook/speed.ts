import { shippedNodeOptions } from '../../test/support/shipped.ts';
import { paced } from '../support/pace.ts';
import { cpuSecondsOf, runScript } from '../support/process.ts';
import { serving } from '../support/serving.ts';
import { type BenchResult, summary } from '../support/timing.ts';
import { openReviewLoad } from './raw-load.ts';
import { CONCURRENCY, startWarmWebhook } from './reviews.ts';

const ROUNDS = 15;
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

/**
 * The same pod over TLS 1.3 with keep-alive, four at a time, with the same memory settings. Processor time is used
 * because both are busy on one thread. Both run at once because the speed of a shared machine varies.
 */
async function reviewsOver(script: string, name: string, least: number): Promise<BenchResult> {
  const webhook = await startWarmWebhook();
  const { certificate, ca } = webhook.cluster;
  const reference = runScript(script, [], { ...serving(certificate), ...shippedNodeOptions('webhook') });
  try {
    const { port } = await reference.line((line) => typeof line['port'] === 'number');
    const base = await openReviewLoad({ port: Number(port), path: '/mutate-pods', ca }, webhook.body, CONCURRENCY);
    // Warms up the compiler of both.
    for (const load of [webhook.load, base]) await load.run(paced(WARM_UP, 3000));
    const ratios: number[] = [];
    for (let round = 0; round < paced(ROUNDS, 5); round++) {
      const [measured, theirs] = await Promise.all([
        secondsFor(webhook.process.pid, () => webhook.load.run(CALLS)),
        secondsFor(reference.pid, () => base.run(CALLS)),
      ]);
      ratios.push(theirs / measured);
    }
    base.close();
    return summary(name, ratios, { least });
  } finally {
    await Promise.all([reference.stop(), webhook.stop()]);
  }
}

/** Processor seconds of a process during some work. */
export async function secondsFor(pid: number, work: () => Promise<unknown>): Promise<number> {
  const before = cpuSecondsOf(pid);
  await work();
  return cpuSecondsOf(pid) - before;
}
