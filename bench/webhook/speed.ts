import { paced } from '../support/pace.ts';
import { cpuSecondsOf, runScript } from '../support/process.ts';
import { serving } from '../support/serving.ts';
import { type BenchResult, summary } from '../support/timing.ts';
import { openReviewLoad } from './raw-load.ts';
import { CONCURRENCY, startWarmWebhook } from './reviews.ts';

const ROUNDS = 15;
const CALLS = 1500;
const WARM_UP = 6000;
const BOUND = 1.2;

/**
 * Reviews for a second of processor time that the webhook gives, with its look-ups from warm caches, by those of the
 * express reference, which looks nothing up: the same pod over TLS 1.3 with keep-alive, four at a time. Processor time,
 * since both are busy on one thread; both at once, since a machine that others use as well is now faster and now slower.
 */
export async function reviewsOverExpress(): Promise<BenchResult> {
  const webhook = await startWarmWebhook();
  const { certificate, ca } = webhook.cluster;
  const reference = runScript('bench/webhook/express-reference.ts', [], serving(certificate));
  try {
    const { port } = await reference.line((line) => typeof line['port'] === 'number');
    const base = await openReviewLoad({ port: Number(port), path: '/mutate-pods', ca }, webhook.body, CONCURRENCY);
    // Until both are compiled.
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

/** Processor time that a process takes meanwhile. */
export async function secondsFor(pid: number, work: () => Promise<unknown>): Promise<number> {
  const before = cpuSecondsOf(pid);
  await work();
  return cpuSecondsOf(pid) - before;
}
