import { setMaxListeners } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import type { NodeTopologyStatus } from '../../kube/node-topology.ts';
import { createLogger } from '../../runtime/log.ts';
import { ClusterState } from '../../scheduler-plugin/cluster/cluster-state.ts';
import { unreadablePodView } from '../../scheduler-plugin/cluster/pod-view.ts';
import { schedulingPod } from '../../scheduler-plugin/extender/args.ts';
import { type BenchResult, summary } from '../support/timing.ts';
import { createBenchExtender } from './extender.ts';
import { nodeName } from './nodes.ts';

const NODES = 60;
const FITTING = 47;
const CELLS = 8;
const CORES_PER_CELL = 16;
const TENANT_PODS = 24;
/** Of kube-scheduler, for a pod whose attempt failed with an error (podInitialBackoffSeconds, podMaxBackoffSeconds). */
const BACKOFF_SECONDS = [1, 2, 4, 8, 10];
const MAX_SECONDS = 60;

const coresOf = (cell: number, count: number) => {
  const first = cell * CORES_PER_CELL;
  const sibling = first + CELLS * CORES_PER_CELL;
  return `${first}-${first + count - 1},${sibling}-${sibling + count - 1}`;
};

/** `as-full-as-others`: the number of free CPUs does not show which node fits. */
type Fitting = 'empty' | 'as-full-as-others';

/** 256 CPUs on eight NUMA nodes. All but one node have a NUMA node that is half in use, a different one and not alike. */
function statusOf(index: number, fitting: Fitting): NodeTopologyStatus {
  const cores = CELLS * CORES_PER_CELL;
  const inOneCell = coresOf(index % CELLS, 8 + (index % 7));
  const inEachCell = Array.from({ length: CELLS }, (_, cell) => coresOf(cell, 1 + Number(cell < 3))).join();
  const isFitting = index === FITTING;
  const used = { podUID: `used-${index}`, container: 'compute', cpus: isFitting ? inEachCell : inOneCell };
  return {
    kubeletVersion: 'v1.36.2',
    cells: Array.from({ length: CELLS }, (_, id) => ({ id, cpus: coresOf(id, CORES_PER_CELL) })),
    cores: Array.from({ length: cores }, (_, core) => `${core},${core + cores}`),
    reserved: '',
    cpuManager: { policy: 'static', options: { 'full-pcpus-only': 'true' } },
    topologyManager: { policy: 'single-numa-node', scope: 'container' },
    physnets: [{ name: `physnet${index}`, cells: '0' }],
    assignments: isFitting && fitting === 'empty' ? [] : [used],
  };
}

/** Its containers take a NUMA node each, which a count of free CPUs does not show: each node needs a prediction. */
function podOf(namespace: string, uid: string, containers: number, cpu: string, memory: string) {
  const resources = { requests: { cpu, memory }, limits: { cpu, memory } };
  const list = Array.from({ length: containers }, (_, i) => ({ name: `c${i}`, resources }));
  return schedulingPod.parse({
    metadata: { namespace, name: uid, uid, resourceVersion: '1' },
    spec: { containers: list },
  });
}
type Pod = ReturnType<typeof podOf>;

function start(fitting: Fitting) {
  const log = createLogger('bench', 'error');
  const state = new ClusterState(log);
  for (let index = 0; index < NODES; index++) {
    state.nodeChanged(nodeName(index), { dpuHost: false });
    state.reportChanged(nodeName(index), statusOf(index, fitting));
  }
  return { state, ...createBenchExtender(state, log) };
}
type Started = ReturnType<typeof start>;

/** Seconds until the pod gets its node, called as kube-scheduler would. */
async function secondsToFit({ extender }: Started, pod: Pod, signal: AbortSignal): Promise<number> {
  const names = Array.from({ length: NODES }, (_, index) => nodeName(index));
  const begun = performance.now();
  const seconds = () => (performance.now() - begun) / 1000;
  for (let attempt = 0; seconds() < MAX_SECONDS && !signal.aborted; attempt++) {
    try {
      if (extender.filter({ pod, names, nodes: undefined }, 0).answers.length > 0) return seconds();
    } catch {
      // Not checked in time: the next attempt continues.
    }
    await delay((BACKOFF_SECONDS[attempt] ?? 10) * 1000, undefined, { signal }).catch(() => undefined);
  }
  return seconds();
}

async function measured(
  prepare: (started: Started, signal: AbortSignal) => void,
  fitting: Fitting = 'as-full-as-others',
): Promise<number> {
  const started = start(fitting);
  const ended = new AbortController();
  setMaxListeners(TENANT_PODS + 1, ended.signal);
  prepare(started, ended.signal);
  const seconds = await secondsToFit(started, podOf('victim', 'victim', CELLS, '18', '1Gi'), ended.signal);
  ended.abort();
  started.lookahead.stop();
  return seconds;
}

/** Time until a pod has the only node that fits it, among nodes that each need a long prediction. */
export async function onlyFit(): Promise<BenchResult[]> {
  const nothing = () => undefined;
  const alone = [await measured(nothing), await measured(nothing, 'empty')];
  const crowded = await measured((started, signal) => {
    for (let i = 0; i < TENANT_PODS; i++)
      void secondsToFit(started, podOf('tenant', `t${i}`, CELLS + 1, '18', `${i + 1}Mi`), signal);
  });
  const unreadable = await measured(({ state }) => {
    for (let index = 0; index < NODES; index++) {
      const resources = { requests: { cpu: '2' } };
      const raw = {
        metadata: { uid: `u${index}`, namespace: 'tenant', name: `u${index}`, resourceVersion: '1' },
        spec: { nodeName: nodeName(index), containers: [{ resources }] },
        status: { phase: 'Pending', qosClass: 'Guaranteed' },
      };
      state.podChanged(undefined, unreadablePodView(raw, undefined), true);
    }
  });
  return [
    summary('scheduler-plugin.only-fit-alone-seconds', alone, { most: 5 }),
    summary('scheduler-plugin.only-fit-beside-24-pods-seconds', [crowded], { most: 10 }),
    summary('scheduler-plugin.only-fit-beside-unreadable-pods-seconds', [unreadable], { most: 10 }),
  ];
}
