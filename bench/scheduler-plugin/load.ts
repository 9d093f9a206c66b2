import { mkdtemp, writeFile } from 'node:fs/promises';
import { createServer, type ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { NODE_TOPOLOGY_API } from '../../kube/node-topology.ts';
import { formatMicroTime } from '../../model/lease/timing.ts';
import { readMetric } from '../../test/support/daemon-metrics.ts';
import { kubeconfigOf } from '../../test/support/kubeconfig.ts';
import { listenOnLoopback } from '../../test/support/processes.ts';
import { shippedNodeOptions } from '../../test/support/shipped.ts';
import { until } from '../../test/support/until.ts';
import { podVector } from '../../test/webhook/launcher-fixture.ts';
import { createClient } from '../support/http-load.ts';
import { bundle, cpuSecondsOf, memoryOf, run } from '../support/process.ts';
import { type BenchResult, paced, summary } from '../support/timing.ts';
import { LAUNCHER_CONTAINER, nodeName, nodeStatus, offeredNames } from './nodes.ts';

const NODES = 5000;
/** As many as kube-scheduler offers by default. */
const OFFERED = 500;
const VMS_A_SECOND = 20;
/** Seconds between two renewals of an agent's Lease, and between two updates of a Node's status by its kubelet. */
const RENEWAL_SECONDS = 10;
const STATUS_SECONDS = 300;
/** Seconds that a VM runs. */
const LIFE_SECONDS = 10;
const WARM_UP_SECONDS = 20;
const SECONDS = 60;
const TICK_SECONDS = 0.05;
/** Seconds over which the longest task is measured: a stall of the machine counts only once. */
const WINDOW_SECONDS = 5;
const BOUNDS = { share: 0.4, megabytes: 256, longestTask: 100 } as const;

const NODES_PATH = '/api/v1/nodes';
const PODS_PATH = '/api/v1/pods';
const REPORTS_PATH = `/apis/${NODE_TOPOLOGY_API.apiVersion}/${NODE_TOPOLOGY_API.plural}`;
const LEASES_PATH = '/apis/coordination.k8s.io/v1/namespaces/plumbline-system/leases';
/** In a namespace of its own, since the stand-in does not select fields. */
const SCHEDULER_LEASES_PATH = '/apis/coordination.k8s.io/v1/namespaces/bench/leases';
const HOST = 'bench';

const renewTime = () => formatMicroTime(BigInt(Date.now()) * 1000n);
const meta = (name: string) => ({ name, resourceVersion: '1' });

function nodeObject(name: string) {
  const labels = { 'kubernetes.io/arch': 'amd64', 'kubernetes.io/hostname': name };
  const conditions = ['Ready', 'MemoryPressure', 'DiskPressure', 'PIDPressure'].map((type) => ({
    type,
    status: type === 'Ready' ? 'True' : 'False',
    lastHeartbeatTime: new Date().toISOString(),
    message: 'as the kubelet says',
  }));
  return { metadata: { ...meta(name), uid: name, labels }, status: { capacity: { cpu: '128' }, conditions } };
}

function agentLease(node: string) {
  const metadata = { ...meta(`plumbline-agent-${node}`), namespace: 'plumbline-system' };
  return { metadata, spec: { holderIdentity: node, leaseDurationSeconds: 40, renewTime: renewTime() } };
}

/** The Lease of the scheduler in the extender's pod, which leads. */
function schedulerLease() {
  const metadata = { ...meta('scheduler'), namespace: 'bench' };
  return { metadata, spec: { holderIdentity: `${HOST}_1`, leaseDurationSeconds: 600, renewTime: renewTime() } };
}

/**
 * The extender as it is shipped, with the realistic load: 5,000 nodes with their heartbeats, and 20 VMs a second that
 * start while as many end. Its share of a core, its memory, and the longest task of its event loop.
 */
export async function realisticLoad(): Promise<BenchResult[]> {
  const names = Array.from({ length: NODES }, (_, index) => nodeName(index));
  const reports = names.map((name, index) => ({ metadata: meta(name), status: nodeStatus(index) }));
  const api = await startApiStandIn(
    new Map<string, readonly object[]>([
      [NODES_PATH, names.map(nodeObject)],
      [REPORTS_PATH, reports],
      [LEASES_PATH, names.map(agentLease)],
      [SCHEDULER_LEASES_PATH, [schedulerLease()]],
    ]),
  );
  const kubeconfig = join(await mkdtemp(join(tmpdir(), 'plumbline-bench-')), 'kubeconfig');
  await writeFile(kubeconfig, JSON.stringify(kubeconfigOf({ server: api.url }, { token: 'none' })));
  const args = [
    ...['--scheduler-lease', 'bench/scheduler', '--pod-name', HOST, '--kubeconfig', kubeconfig],
    ...['--port', '0', '--probe-port', '0'],
  ];
  const extender = run(
    process.execPath,
    [bundle('scheduler-plugin.cjs'), ...args],
    shippedNodeOptions('scheduler-plugin'),
  );
  try {
    const { port, probePort } = await extender.line((line) => typeof line['probePort'] === 'number');
    const ready = async () => (await fetch(`http://127.0.0.1:${probePort}/readyz`)).ok;
    await until('the extender to be ready', ready);
    const traffic = createTraffic(api, names, Number(port));
    await traffic(paced(WARM_UP_SECONDS, 10));
    await longestTaskOf(Number(probePort));
    const before = { processor: cpuSecondsOf(extender.pid), time: performance.now() };
    /** The longest task of each window. */
    const longest: number[] = [];
    let failure: unknown;
    const watched = traffic(paced(SECONDS, 15)).catch((error: unknown) => {
      failure = error;
    });
    let ended = false;
    void watched.finally(() => {
      ended = true;
    });
    while (!ended) {
      await delay(WINDOW_SECONDS * 1000);
      longest.push(await longestTaskOf(Number(probePort)));
    }
    if (failure !== undefined) throw failure;
    const share = (cpuSecondsOf(extender.pid) - before.processor) / ((performance.now() - before.time) / 1000);
    const megabytes = memoryOf(extender.pid).rss / 1024 / 1024;
    const name = 'scheduler-plugin.realistic-load';
    return [
      summary(`${name}-share-of-a-core`, [share], { most: BOUNDS.share }),
      summary(`${name}-resident-megabytes`, [megabytes], { most: BOUNDS.megabytes }),
      summary(`${name}-longest-task-ms`, longest, { most: BOUNDS.longestTask }),
    ];
  } finally {
    await extender.stop();
    await api.stop();
  }
}

/** Milliseconds, since the last call. */
async function longestTaskOf(probePort: number): Promise<number> {
  return (await readMetric(probePort, 'nodejs_eventloop_lag_max_seconds')) * 1000;
}

/** Returns a function that plays heartbeats and VMs for a number of seconds. */
function createTraffic(api: ApiStandIn, names: readonly string[], port: number) {
  const filter = createClient({ port, path: '/filter' });
  const prioritize = createClient({ port, path: '/prioritize' });
  const launcher = podVector() as { readonly metadata: object; readonly spec: object };
  const orders = Array.from({ length: 8 }, (_, seed) => JSON.stringify(offeredNames(NODES, seed, OFFERED)));
  const indices = new Map(names.map((name, index) => [name, index]));
  const vms = new Map<string, Map<string, { podUID: string; container: string; cpus: string }>>();
  let next = 0;
  let beat = 0;
  let status = 0;

  const report = (node: string) => {
    const own = nodeStatus(indices.get(node)!);
    const assignments = [...own.assignments, ...(vms.get(node)?.values() ?? [])];
    api.push(REPORTS_PATH, 'MODIFIED', { metadata: meta(node), status: { ...own, assignments } });
  };
  /** The first ten CPUs of whole cores that no one has. */
  const freeCpus = (node: string) => {
    const index = indices.get(node)!;
    const taken = (index % 8) * 9 + (vms.get(node)?.size ?? 0) * 5;
    return `${taken + 1}-${taken + 5},${taken + 65}-${taken + 69}`;
  };
  const playVm = async (turn: number) => {
    const uid = `vm-${turn}`;
    const metadata = { ...launcher.metadata, name: uid, uid, resourceVersion: '1' };
    const pod = (phase: string, more: object = {}) => ({
      metadata,
      spec: { ...launcher.spec, containers: [LAUNCHER_CONTAINER], ...more },
      status: { phase, qosClass: 'Guaranteed' },
    });
    api.push(PODS_PATH, 'ADDED', pod('Pending'));
    const bodyOf = (list: string) => `{"Pod":${JSON.stringify(pod('Pending'))},"Nodes":null,"NodeNames":${list}}`;
    const { NodeNames, Error: text } = (await filter.ask(bodyOf(orders[turn % orders.length]!))) as {
      NodeNames: readonly string[] | null;
      Error: string;
    };
    const [node] = NodeNames ?? [];
    if (node === undefined) throw new Error(`no node for ${uid}: ${text}`);
    await prioritize.ask(bodyOf(JSON.stringify(NodeNames)));
    const on = { nodeName: node };
    api.push(PODS_PATH, 'MODIFIED', pod('Pending', on));
    const there = vms.get(node) ?? new Map();
    vms.set(node, there.set(uid, { podUID: uid, container: 'compute', cpus: freeCpus(node) }));
    report(node);
    api.push(PODS_PATH, 'MODIFIED', pod('Running', on));
    setTimeout(() => {
      api.push(PODS_PATH, 'DELETED', pod('Running', on));
      there.delete(uid);
      report(node);
    }, LIFE_SECONDS * 1000).unref();
  };

  return async (seconds: number): Promise<void> => {
    const begun = performance.now();
    const first = { next, beat, status };
    const playing: Promise<void>[] = [];
    for (let elapsed = 0; elapsed < seconds; elapsed = (performance.now() - begun) / 1000) {
      for (; beat < first.beat + (elapsed * NODES) / RENEWAL_SECONDS; beat++) {
        api.push(LEASES_PATH, 'MODIFIED', agentLease(names[beat % NODES]!));
      }
      for (; status < first.status + (elapsed * NODES) / STATUS_SECONDS; status++) {
        api.push(NODES_PATH, 'MODIFIED', nodeObject(names[status % NODES]!));
      }
      for (; next < first.next + elapsed * VMS_A_SECOND; next++) playing.push(playVm(next));
      await delay(TICK_SECONDS * 1000);
    }
    await Promise.all(playing);
  };
}

/** An API server of fixed lists, whose watches send what a benchmark pushes: it costs less than the measured daemon. */
interface ApiStandIn {
  readonly url: string;
  /** Sends an event to the watches of a collection. */
  push(
    path: string,
    type: 'ADDED' | 'MODIFIED' | 'DELETED',
    object: { readonly metadata: object; readonly [field: string]: unknown },
  ): void;
  stop(): Promise<void>;
}

/** @param lists the objects of each collection, by its path; all others are empty */
async function startApiStandIn(lists: ReadonlyMap<string, readonly object[]>): Promise<ApiStandIn> {
  const watches = new Map<string, Set<ServerResponse>>();
  let version = 1;
  const server = createServer((request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? '/', 'http://api');
    request.resume();
    response.writeHead(200, { 'content-type': 'application/json' });
    if (request.method !== 'GET') {
      response.end('{}');
    } else if (searchParams.get('watch') === 'true') {
      const open = watches.get(pathname) ?? new Set();
      watches.set(pathname, open.add(response));
      response.on('close', () => open.delete(response));
      response.flushHeaders();
    } else {
      const metadata = { resourceVersion: String(version) };
      response.end(JSON.stringify({ metadata, items: lists.get(pathname) ?? [] }));
    }
  });
  return {
    url: `http://127.0.0.1:${await listenOnLoopback(server)}`,
    push(path, type, object) {
      const metadata = { ...object.metadata, resourceVersion: String(++version) };
      const line = `${JSON.stringify({ type, object: { ...object, metadata } })}\n`;
      for (const watch of watches.get(path) ?? []) watch.write(line);
    },
    async stop() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
