import assert from 'node:assert/strict';
import type { KubeClient } from '../../../kube/client.ts';
import type { PinningState } from '../../../kube/node-topology.ts';
import { Cluster } from '../../../scheduler-plugin/cluster/cluster.ts';
import { NeedsReader } from '../../../scheduler-plugin/cluster/pod-needs.ts';
import { silent } from '../../support/logger.ts';
import { until } from '../../support/until.ts';
import { type ExtenderUnderTest, extenderOf, podOf, statusOf, withUid } from '../extender-fixture.ts';

interface Call {
  readonly path: string;
  readonly query: Readonly<Record<string, unknown>>;
}

const clusterOf = (
  { state }: ExtenderUnderTest,
  get: (call: Call) => object,
  pinningReported: (node: string, states: readonly PinningState[]) => void = () => undefined,
) => {
  const client = {
    get: async (path: string, { query = {} }: Partial<Call> = {}) => get({ path, query }),
    watch: async (_: string, { signal }: { signal: AbortSignal }) => {
      await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
      throw new Error('the watch ends');
    },
  };
  const cluster = new Cluster({
    client: client as unknown as KubeClient,
    state,
    reader: new NeedsReader('all'),
    dpuLeaseNamespace: 'ovn-kubernetes',
    log: silent,
    now: () => 0,
  });
  cluster.on('pinnings', pinningReported);
  return cluster;
};

describe('the pods that a replica reads when it becomes active', () => {
  const on = (uid: string, node: string, cpu = '4') => {
    const pod = withUid(podOf(cpu), uid);
    return { ...pod, spec: { ...pod.spec, nodeName: node } };
  };
  const setUp = (pages: readonly (readonly unknown[] | null)[]) => {
    const calls: Call[] = [];
    const under = extenderOf();
    const cluster = clusterOf(under, (call) => {
      const page = calls.push(call) - 1;
      const next = page + 1 < pages.length ? { continue: `page-${page + 1}` } : {};
      return { metadata: { resourceVersion: '1', ...next }, items: pages[page] };
    });
    return { ...under, cluster, calls };
  };
  const { signal } = new AbortController();

  it('get their reservations from each page; a page may be without items', async () => {
    const { cluster, calls, state } = setUp([[on('a', 'n1')], null, [on('b', 'n1')]]);
    await cluster.catchUp(signal);
    const [first] = calls;
    assert.deepEqual(
      [first?.path, first?.query['fieldSelector']],
      ['/api/v1/pods', 'status.phase=Pending,spec.nodeName!='],
    );
    const pages = calls.map(({ query }) => [query['continue'], query['limit']].join());
    assert.deepEqual(pages, [',500', 'page-1,500', 'page-2,500']);
    assert.deepEqual([state.reservations.of('a')?.kind, state.reservations.of('b')?.kind], ['bound', 'bound']);
  });

  it('are skipped if they have no exclusive CPUs or cannot be read', async () => {
    const { cluster, state } = setUp([[{ metadata: {} }, 7, on('shared', 'n1', '500m'), on('a', 'n1')]]);
    await cluster.catchUp(signal);
    assert.deepEqual([state.reservations.of('a')?.kind, state.reservations.size], ['bound', 1]);
  });
});

describe('the first list of reports', () => {
  it('quarantines a report that cannot be parsed, and passes on the pinning states of the others', async () => {
    const pinning = [{ podUID: 'p', namespace: 'default', podName: 'vm', state: 'pinned' as const, vcpus: 2 }];
    const reports = [
      { metadata: { name: 'good' }, status: { ...statusOf(), pinning } },
      { metadata: { name: 'plain' }, status: statusOf() },
      { metadata: { name: 'empty' } },
      { metadata: { name: 'bad' }, status: { ...statusOf(), cells: 'none' } },
    ];
    const nodes = [{ metadata: { name: 'bare' } }];
    const under = extenderOf({ nodes: {} });
    const pinned = new Map<string, readonly PinningState[]>();
    const cluster = clusterOf(
      under,
      ({ path }) => ({
        metadata: { resourceVersion: '1' },
        items: path.endsWith('/nodetopologies') ? reports : path.endsWith('/nodes') ? nodes : [],
      }),
      (node, states) => void pinned.set(node, states),
    );
    const ending = new AbortController();
    const running = cluster.run(ending.signal);
    await until('the lists', () => cluster.missing === undefined);
    ending.abort();
    await running;
    assert.deepEqual([...under.state.faults.keys()], ['bad']);
    const { dpuHost, dpuReady } = cluster.nodes.get('bare') ?? assert.fail('a Node without a status');
    assert.deepEqual([dpuHost, dpuReady], [false, undefined]);
    assert.deepEqual(
      ['good', 'plain', 'empty', 'bad'].map((node) => pinned.get(node)),
      [pinning, [], [], []],
    );
  });
});
