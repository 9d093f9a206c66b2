import { type BenchResult, summary } from '../model/timing.ts';
import { runScript } from '../support/process.ts';
import { openReviewLoad } from './raw-load.ts';
import { CONCURRENCY, startWarmWebhook } from './reviews.ts';

/** Short turns, so that a busy machine slows both sides of most of them. */
const ROUNDS = 25;
const CALLS = 500;
const WARM_UP = 6000;
const BOUND = 1.2;

/**
 * Reviews a second of the webhook, with its look-ups from warm caches, by those of the express reference, which looks
 * nothing up: the same pod over TLS 1.3 with keep-alive, four at a time.
 */
export async function reviewsOverExpress(): Promise<BenchResult> {
  const webhook = await startWarmWebhook();
  const { certificate, ca } = webhook.cluster;
  const tls = { PLUMBLINE_BENCH_TLS: JSON.stringify(certificate) };
  const reference = runScript('bench/webhook/express-reference.ts', tls);
  try {
    const { port } = await reference.line((line) => typeof line['port'] === 'number');
    const base = await openReviewLoad({ port: Number(port), path: '/mutate-pods', ca }, webhook.body, CONCURRENCY);
    // Until both are compiled.
    for (const load of [webhook.load, base]) await load.run(WARM_UP);
    const ratios: number[] = [];
    for (let round = 0; round < ROUNDS; round++) {
      const measured = await webhook.load.run(CALLS);
      ratios.push(measured / (await base.run(CALLS)));
    }
    base.close();
    return summary('webhook.reviews-over-express', ratios, { least: BOUND });
  } finally {
    await Promise.all([reference.stop(), webhook.stop()]);
  }
}
