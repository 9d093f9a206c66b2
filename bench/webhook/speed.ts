import { paced } from '../support/pace.ts';
import { cpuSecondsOf, runScript } from '../support/process.ts';
import { serving } from '../support/serving.ts';
import { type BenchResult, summary } from '../support/timing.ts';
import { openReviewLoad } from './raw-load.ts';
import { CONCURRENCY, startWarmWebhook } from './reviews.ts';

const ROUNDS = 15;
const CALLS = 1500;
const WARM_UP = 6000;
const BOUND = 0.8;

/**
 * Reviews per second of processor time of the webhook, with lookups in warm caches, relative to the express reference
 * without lookups: the same pod over TLS 1.3 with keep-alive, four at a time. Processor time is used because both are
 * busy on one thread. Both run at once because the speed of a shared machine varies.
 */
export async function reviewsOverExpress(): Promise<BenchResult> {
  const webhook = await startWarmWebhook();
  const { certificate, ca } = webhook.cluster;
  const reference = runScript('bench/webhook/express-reference.ts', [], serving(certificate));
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
    return summary('webhook.reviews-over-express', ratios, { least: BOUND });
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
