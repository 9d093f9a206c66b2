import { paced } from '../support/pace.ts';
import { memoryOf, root, run } from '../support/process.ts';
import { serving } from '../support/serving.ts';
import { type BenchResult, summary } from '../support/timing.ts';
import { openReviewLoad } from './raw-load.ts';
import { CONCURRENCY, startWarmWebhook } from './reviews.ts';
import { secondsFor } from './speed.ts';

const ROUNDS = 9;
const CALLS = 1500;
const WARM_UP = 6000;

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
  const { certificate, ca } = webhook.cluster;
  const pepr = run(process.execPath, [`${root}/bench/webhook/pepr-reference.cjs`], {
    PLUMBLINE_PEPR: directory,
    ...serving(certificate),
  });
  try {
    const { port, path } = await pepr.line((line) => typeof line['port'] === 'number');
    const base = await openReviewLoad({ port: Number(port), path: String(path), ca }, webhook.body, CONCURRENCY);
    for (const load of [webhook.load, base]) await load.run(paced(WARM_UP, 3000));
    const ratios: number[] = [];
    const memory: number[] = [];
    for (let round = 0; round < paced(ROUNDS); round++) {
      const [measured, theirs] = await Promise.all([
        secondsFor(webhook.process.pid, () => webhook.load.run(CALLS)),
        secondsFor(pepr.pid, () => base.run(CALLS)),
      ]);
      ratios.push(theirs / measured);
      memory.push(memoryOf(webhook.process.pid).rss / memoryOf(pepr.pid).rss);
    }
    base.close();
    const [speed = '', rss = ''] = PEPR_NAMES;
    return [summary(speed, ratios, { least: 1 }), summary(rss, memory, { most: 1 })];
  } finally {
    await Promise.all([pepr.stop(), webhook.stop()]);
  }
}
