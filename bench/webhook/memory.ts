import { setTimeout as delay } from 'node:timers/promises';
import { NETWORK_ATTACHMENT_DEFINITIONS, NODE_TOPOLOGIES, NODES } from '../../sandbox/api-server/built-in-types.ts';
import { startBenchCluster } from '../daemons/index.ts';
import { MACHINE } from '../scheduler-plugin/nodes.ts';
import { memoryOf } from '../support/process.ts';
import { type BenchResult, paced, summary } from '../support/timing.ts';
import { startWarmWebhook, untilReady } from './reviews.ts';

const MEGABYTE = 1000 * 1000;
/**
 * Resident memory of Pepr 1.3 in bytes after the same load, as measured on another machine: it does not install here.
 */
const PEPR = 191 * MEGABYTE;
const REVIEWS = 100_000;
const WARM = 10_000;

/**
 * Resident memory under load relative to Pepr's; and the growth of private memory over 100,000 reviews: the end
 * relative to the first tenth.
 */
export async function memoryOverReviews(): Promise<BenchResult[]> {
  const webhook = await startWarmWebhook();
  try {
    const each = paced(WARM, 4000);
    await webhook.load.run(each);
    const warm = memoryOf(webhook.process.pid).private;
    const samples: { readonly rss: number; readonly private: number }[] = [];
    for (let done = WARM; done < REVIEWS; done += WARM) {
      await webhook.load.run(each);
      samples.push(memoryOf(webhook.process.pid));
    }
    // The last third, so that a single garbage collection does not decide.
    const last = samples.slice(-3);
    return [
      summary(
        'webhook.rss-over-pepr',
        samples.map(({ rss }) => rss / PEPR),
        { most: 0.5 },
      ),
      summary(
        'webhook.private-memory-growth-in-100k-reviews',
        last.map((sample) => sample.private / warm),
        { most: 1.1 },
      ),
    ];
  } finally {
    await webhook.stop();
  }
}

const NADS = 10_000;
const NODE_COUNT = 5000;
const MAX_CACHED_BYTES = 80 * MEGABYTE;

/** Private memory with a large cluster in the caches minus that with an empty one, relative to the limit of 40 MB. */
export async function memoryOfCaches(): Promise<BenchResult> {
  const [empty, full] = [await startBenchCluster(), await startBenchCluster()];
  try {
    await fill(full.client);
    const settled = async (cluster: typeof full) => {
      const daemon = await cluster.start('webhook');
      await untilReady(daemon);
      await delay(5000);
      return memoryOf(daemon.pid).private;
    };
    const ratio = ((await settled(full)) - (await settled(empty))) / MAX_CACHED_BYTES;
    return summary('webhook.caches-of-10k-networks-and-5k-nodes', [ratio], { most: 1 });
  } finally {
    await Promise.all([empty.stop(), full.stop()]);
  }
}

/** Objects of a large cluster: each node has labels and a report of 64 cores and 100 pods. */
async function fill(client: Awaited<ReturnType<typeof startBenchCluster>>['client']): Promise<void> {
  const spec = (index: number) => ({
    cniVersion: '1.1.0',
    type: 'ovn-k8s-cni-overlay',
    name: `network-${index}`,
    topology: index % 2 === 0 ? 'localnet' : 'layer2',
    physicalNetworkName: `physnet${index % 8}`,
    netAttachDefName: `telco-east/network-${index}`,
    subnets: '10.100.0.0/16',
    mtu: 9000,
  });
  for (let index = 0; index < NADS; index++) {
    await client.create(NETWORK_ATTACHMENT_DEFINITIONS, {
      apiVersion: 'k8s.cni.cncf.io/v1',
      kind: 'NetworkAttachmentDefinition',
      metadata: { name: `network-${index}`, namespace: 'telco-east' },
      spec: { config: JSON.stringify(spec(index)) },
    });
  }
  for (let index = 0; index < NODE_COUNT; index++) {
    const name = `worker-${String(index).padStart(4, '0')}`;
    await client.create(NODES, {
      apiVersion: 'v1',
      kind: 'Node',
      metadata: { name, labels: labelsOf(name) },
      spec: {},
      status: {},
    } as never);
    const topology = { apiVersion: 'plumbline.dev/v1alpha1', kind: 'NodeTopology', metadata: { name } };
    await client.create(NODE_TOPOLOGIES, topology);
    await client.edit(NODE_TOPOLOGIES, topology, (draft) => Object.assign(draft, { status: report(index) }), 'status');
  }
}

function labelsOf(name: string): Record<string, string> {
  const features = Array.from({ length: 25 }, (_, i) => [`feature.node.kubernetes.io/cpu-feature-${i}`, 'true']);
  return {
    ...Object.fromEntries(features),
    'kubernetes.io/hostname': name,
    'kubernetes.io/arch': 'amd64',
    'kubevirt.io/schedulable': 'true',
    'kubevirt.io/cpumanager': 'true',
  };
}

function report(index: number): object {
  return {
    ...MACHINE,
    assignments: Array.from({ length: 60 }, (_, i) => ({
      podUID: `00000000-0000-4000-8000-${String(index * 60 + i).padStart(12, '0')}`,
      container: 'compute',
      cpus: `${i + 1},${i + 65}`,
    })),
    physnets: Array.from({ length: 8 }, (_, i) => ({ name: `physnet${i}`, cells: String(i % 2) })),
    tunnel: { cells: '0' },
  };
}
