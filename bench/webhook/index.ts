import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { startBenchCluster } from '../daemons/cluster.ts';
import { type BenchResult, summary } from '../model/timing.ts';
import { createClient, quantile } from '../support/http-load.ts';
import { root, runScript } from '../support/process.ts';

const ROUNDS = 7;
const CALLS = 200;
const CONCURRENCY = 4;
const BOUND = 12;

/** A review over TLS, look-up of the VMI at the API server included, against an echo over TLS of the same body. */
export async function reviewOverEcho(): Promise<BenchResult> {
  const cluster = await startBenchCluster();
  const echo = runScript('bench/support/echo-server.ts', { PLUMBLINE_BENCH_TLS: JSON.stringify(cluster.certificate) });
  try {
    const vmi = vector('vmi.json') as { metadata: Record<string, unknown> };
    for (const field of ['resourceVersion', 'finalizers', 'generation']) delete vmi.metadata[field];
    await cluster.addVmi(vmi);
    const webhook = await cluster.start('webhook');
    const { port } = await echo.line((line) => typeof line['port'] === 'number');
    const review = createClient({ port: webhook.port, path: '/mutate-pods', ca: cluster.ca });
    const base = createClient({ port: Number(port), path: '/', ca: cluster.ca });
    const load = { calls: CALLS, concurrency: CONCURRENCY, body: reviewBody() };
    await review.load(load);
    await base.load(load);
    const ratios: number[] = [];
    for (let round = 0; round < ROUNDS; round++) {
      const [measured, reference] = [await review.load(load), await base.load(load)];
      ratios.push(quantile(measured, 0.5) / quantile(reference, 0.5));
    }
    review.close();
    base.close();
    return summary('webhook.review-over-tls-echo', ratios, { most: BOUND });
  } finally {
    await Promise.all([echo.stop(), cluster.stop()]);
  }
}

function vector(name: string): unknown {
  return JSON.parse(readFileSync(join(root, 'test/vectors', name), 'utf8'));
}

function reviewBody(): Buffer {
  const request = {
    uid: 'b2f6d1f0-0000-4000-8000-000000000001',
    kind: { group: '', version: 'v1', kind: 'Pod' },
    operation: 'CREATE',
    namespace: 'telco-east',
    // No Events: they would be written on each call.
    dryRun: true,
    object: vector('virt-launcher-pod.admission.json'),
  };
  return Buffer.from(JSON.stringify({ apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview', request }));
}

/** Every measurement of webhook/, in the order in which it is printed. */
export const WEBHOOK_BENCHES: readonly (() => Promise<BenchResult>)[] = [reviewOverEcho];
