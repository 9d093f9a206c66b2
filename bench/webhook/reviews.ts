import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type BenchCluster, startBenchCluster } from '../daemons/cluster.ts';
import { type Running, root } from '../support/process.ts';
import { openReviewLoad, type ReviewLoad } from './raw-load.ts';

export const CONCURRENCY = 4;

/** A webhook with the VMI and the network of a launcher in its caches, and the review of that launcher. */
export interface WarmWebhook {
  readonly cluster: BenchCluster;
  readonly process: Running;
  readonly body: Buffer;
  readonly load: ReviewLoad;
  stop(): Promise<void>;
}

/** @param nodeArgs options of Node.js for the webhook's process */
export async function startWarmWebhook(nodeArgs: readonly string[] = []): Promise<WarmWebhook> {
  const cluster = await startBenchCluster();
  const vmi = vector('vmi.json') as { metadata: Record<string, unknown> };
  for (const field of ['resourceVersion', 'finalizers', 'generation']) delete vmi.metadata[field];
  const body = reviewBody(await cluster.addVmi(vmi));
  await cluster.addNad({
    apiVersion: 'k8s.cni.cncf.io/v1',
    kind: 'NetworkAttachmentDefinition',
    metadata: { name: 'dpdk-net-east', namespace: 'telco-east' },
    spec: { config: JSON.stringify({ type: 'ovn-k8s-cni-overlay', topology: 'layer2', name: 'dpdk-net-east' }) },
  });
  const process = await cluster.start('webhook', nodeArgs);
  await untilReady(process);
  const load = await openReviewLoad({ port: process.port, path: '/mutate-pods', ca: cluster.ca }, body, CONCURRENCY);
  return {
    cluster,
    process,
    body,
    load,
    async stop() {
      load.close();
      await cluster.stop();
    },
  };
}

const MAX_READY_SECONDS = 60;

/** Waits until a daemon reports that its caches are synced. @throws Error with what it reports, after a minute */
export async function untilReady(daemon: Running): Promise<void> {
  const { probePort } = await daemon.line((line) => typeof line['probePort'] === 'number');
  const end = performance.now() + MAX_READY_SECONDS * 1000;
  for (;;) {
    const response = await fetch(`http://127.0.0.1:${Number(probePort)}/readyz`);
    if (response.ok) return;
    const text = await response.text();
    if (performance.now() > end) throw new Error(`the daemon is not ready after ${MAX_READY_SECONDS} s: ${text}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

export function vector(name: string): unknown {
  return JSON.parse(readFileSync(join(root, 'test/vectors', name), 'utf8'));
}

export function reviewBody(vmiUid: string): Buffer {
  const object = vector('virt-launcher-pod.admission.json') as { metadata: { ownerReferences: { uid: string }[] } };
  object.metadata.ownerReferences[0]!.uid = vmiUid;
  const request = {
    uid: 'b2f6d1f0-0000-4000-8000-000000000001',
    kind: { group: '', version: 'v1', kind: 'Pod' },
    operation: 'CREATE',
    namespace: 'telco-east',
    // A dry run, because otherwise each call would write an Event.
    dryRun: true,
    object,
  };
  return Buffer.from(JSON.stringify({ apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview', request }));
}
