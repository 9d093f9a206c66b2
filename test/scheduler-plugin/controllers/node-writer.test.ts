import assert from 'node:assert/strict';
import { type KubeClient, KubeError } from '../../../kube/client.ts';
import type { WrittenFacts } from '../../../scheduler-plugin/cluster/cluster.ts';
import type { DpuVerdict } from '../../../scheduler-plugin/cluster/dpu-health.ts';
import type { DpuRestarts } from '../../../scheduler-plugin/controllers/dpu-restarts.ts';
import { NodeWriter } from '../../../scheduler-plugin/controllers/node-writer.ts';
import { recordingLogger } from '../../support/logger.ts';
import { useVirtualClock } from '../../support/virtual-clock.ts';
import { extenderOf, statusOf } from '../extender-fixture.ts';

interface Patch {
  readonly path: string;
  readonly type: string;
  readonly body: {
    readonly metadata?: { readonly labels?: object; readonly annotations?: Readonly<Record<string, string>> };
    readonly status?: { readonly conditions: readonly Readonly<Record<string, string>>[] };
  };
}

const REFUSED = new KubeError(403, 'Forbidden', 'no');
const GONE = new KubeError(404, 'NotFound', 'gone');
const RIGHT = { threadsPerCore: '2', fullPcpus: 'true' };

describe('the node writer of the extender', () => {
  let writer: NodeWriter;
  const stage = ({
    facts = {},
    verdict = { ready: true, state: 'alive', age: 3.4 },
    released = false,
    restart = null,
    active = () => true,
    refuse = () => undefined,
  }: {
    readonly facts?: Partial<WrittenFacts>;
    readonly verdict?: DpuVerdict;
    readonly released?: boolean;
    readonly restart?: ReturnType<DpuRestarts['conditionOf']> | 'unknown';
    readonly active?: () => boolean;
    readonly refuse?: (call: number) => Error | undefined;
  }) => {
    const patches: Patch[] = [];
    const client = {
      async patch(path: string, type: string, body: Patch['body']) {
        patches.push({ path, type, body });
        const error = refuse(patches.length);
        if (error !== undefined) throw error;
      },
    } as unknown as KubeClient;
    const { fleet } = extenderOf({ nodes: { n1: statusOf(), n2: undefined } }).state;
    const nodes = new Map<string, WrittenFacts>(
      ['n1', 'n2'].map((name) => [
        name,
        { uid: name, dpuHost: false, dpuReady: undefined, ...RIGHT, ...facts } as WrittenFacts,
      ]),
    );
    const logger = recordingLogger();
    const { log } = logger;
    const dpuHealth = { verdict: () => verdict, isReleased: () => released };
    const restarts = { conditionOf: () => (restart === 'unknown' ? undefined : restart) };
    const announced: string[] = [];
    const announce = (node: string, isReady: boolean) => void announced.push(`${node} ${isReady}`);
    writer = new NodeWriter({ client, fleet, nodes, dpuHealth, restarts, active, announce, log });
    return { patches, logger, fleet, announced };
  };
  const clock = useVirtualClock();
  afterEach(() => writer.stop());

  /** Lets the writer handle that many nodes. */
  const turns = (count = 3) => clock.pass(0.02 * count, 0.02);
  const written = async (options: Parameters<typeof stage>[0]) => {
    const { patches } = stage(options);
    writer.requeue('n1');
    await turns();
    return patches;
  };
  const conditionOf = (patches: readonly Patch[]) => patches[0]?.body.status?.conditions[0];

  it('writes labels for the threads per core and for full-pcpus-only', async () => {
    const facts = { threadsPerCore: undefined, fullPcpus: undefined };
    const labels = { 'plumbline.dev/threads-per-core': '2', 'plumbline.dev/full-pcpus-only': 'true' };
    const type = 'application/merge-patch+json';
    assert.deepEqual(await written({ facts }), [{ path: '/api/v1/nodes/n1', type, body: { metadata: { labels } } }]);
    assert.deepEqual(await written({}), [], 'correct labels are not written again');
    assert.equal((await written({ facts: { fullPcpus: 'false' } })).length, 1);
    assert.equal((await written({ facts: { threadsPerCore: '1' } })).length, 1);
  });

  const CASES: readonly [DpuVerdict, string, string, RegExp][] = [
    [{ ready: true, state: 'alive', age: 3.4 }, 'True', 'LeaseRenewed', /is alive: last renewal [-\d]+T[:\d]+Z$/],
    [{ ready: false, state: 'dead', age: 99.6 }, 'False', 'LeaseExpired', /is dead: last renewal [-\d]+T[:\d]+Z$/],
    [{ ready: false, state: 'unproven', age: undefined }, 'Unknown', 'NotSeenAlive', /its lease was never renewed/],
    [{ ready: true, state: 'unknown', age: undefined }, 'Unknown', 'LeaseUnknown', /its lease was never renewed/],
  ];
  for (const [verdict, status, reason, message] of CASES)
    it(`sets the condition DPUReady of a DPU that is ${verdict.state} to ${status}`, async () => {
      const patches = await written({ facts: { dpuHost: true }, verdict });
      const [{ path, type } = { path: '', type: '' }] = patches;
      assert.deepEqual([path, type], ['/api/v1/nodes/n1/status', 'application/strategic-merge-patch+json']);
      const condition = conditionOf(patches);
      assert.deepEqual(
        [condition?.['type'], condition?.['status'], condition?.['reason']],
        ['plumbline.dev/DPUReady', status, reason],
      );
      assert.match(condition?.['message'] ?? '', message);
      assert.match(condition?.['lastTransitionTime'] ?? '', /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
      const same = { facts: { dpuHost: true, dpuReady: status }, verdict };
      assert.deepEqual(await written(same), [], 'an unchanged status is not written again');
    });

  it('keeps the condition of the previous replica until it has seen a renewal', async () => {
    const verdict = { ready: false, state: 'unproven', age: undefined } as const;
    assert.deepEqual(await written({ facts: { dpuHost: true, dpuReady: 'True' }, verdict }), []);
  });

  it('removes the condition when the node is no longer a DPU host, or when its health check is off', async () => {
    const conditions = [{ type: 'plumbline.dev/DPUReady', $patch: 'delete' }];
    for (const options of [
      { facts: { dpuReady: 'True' } },
      { facts: { dpuHost: true, dpuReady: 'False' }, released: true },
    ]) {
      const [patch, ...others] = await written(options);
      assert.deepEqual([patch?.body.status, others], [{ conditions }, []]);
    }
    assert.deepEqual(await written({ facts: { dpuHost: true }, released: true }), []);
  });

  /** The condition as recorded, the agent as observed, the written condition, and what is announced. */
  const AGENTS: [string, string | undefined, { stale?: boolean; agentRenewed?: boolean }, string?, string?][] = [
    ['no renewal was observed yet', undefined, {}],
    ['the first renewal', undefined, { agentRenewed: true }, 'True LeaseRenewed'],
    ['the Lease has expired', 'True', { agentRenewed: true, stale: true }, 'False LeaseExpired', 'n1 false'],
    ['one that a previous replica has announced', 'False', { stale: true }],
    ['a renewal after silence', 'False', { agentRenewed: true }, 'True LeaseRenewed', 'n1 true'],
  ];
  for (const [label, recorded, flags, condition, announcement] of AGENTS)
    it(`the condition AgentReady, ${label}: ${condition ?? 'unchanged'}, ${announcement ?? 'no announcement'}`, async () => {
      const { patches, fleet, announced } = stage({ facts: { agentReady: recorded } as Partial<WrittenFacts> });
      for (const [flag, value] of Object.entries(flags)) fleet.set('n1', flag as 'stale' | 'agentRenewed', value);
      // Written once, although the watch does not show it yet.
      for (let i = 0; i < 2; i++) {
        writer.requeue('n1');
        await turns();
      }
      const conditions = patches.flatMap(({ body }) => body.status?.conditions ?? []);
      const written = conditions.map(({ type, status, reason }) => `${type} ${status} ${reason}`);
      assert.deepEqual(written, condition === undefined ? [] : [`plumbline.dev/AgentReady ${condition}`]);
      assert.deepEqual(announced, announcement === undefined ? [] : [announcement]);
    });

  it('writes the condition DPURestarted with the time of the restart, and removes it at the end', async () => {
    const restart = { at: '2026-11-29T10:00:00Z', reason: 'DPURebooted', message: 'its DPU’s reboot' };
    const { lastHeartbeatTime: _, ...condition } = conditionOf(await written({ restart })) ?? {};
    const { at, ...texts } = restart;
    const type = 'plumbline.dev/DPURestarted';
    assert.deepEqual(condition, { type, status: 'True', lastTransitionTime: at, ...texts });
    assert.deepEqual(await written({ restart, facts: { dpuRestarted: at } }), [], 'it is not written again');
    const earlier = { dpuRestarted: '2026-11-29T09:00:00Z' };
    assert.equal(conditionOf(await written({ restart, facts: earlier }))?.['lastTransitionTime'], at);
    assert.deepEqual(await written({ restart: 'unknown', facts: earlier }), [], 'not before the pods are known');
    assert.deepEqual(conditionOf(await written({ restart: null, facts: earlier })), { type, $patch: 'delete' });
  });

  it('writes both conditions of a node in one patch', async () => {
    const { patches, fleet } = stage({ facts: { dpuHost: true } });
    fleet.set('n1', 'stale', true);
    writer.requeue('n1');
    await turns();
    const conditions = patches.map(({ body }) =>
      body.status?.conditions.map(({ type, status }) => `${type} ${status}`),
    );
    assert.deepEqual(conditions, [['plumbline.dev/DPUReady True', 'plumbline.dev/AgentReady False']]);
  });

  it('writes nothing while the replica is not active, and no labels from a quarantined report', async () => {
    const facts = { threadsPerCore: undefined };
    assert.deepEqual(await written({ facts, active: () => false }), []);
    const { patches, fleet } = stage({ facts });
    fleet.set('n1', 'quarantined', true);
    writer.requeue('n1');
    await turns();
    assert.deepEqual(patches, []);
  });

  it('writes what changed, and what was to be retried, while the replica was not active for a moment', async () => {
    let active = false;
    const facts = { threadsPerCore: undefined };
    const { patches } = stage({ facts, active: () => active, refuse: (call) => (call === 1 ? REFUSED : undefined) });
    writer.requeue('n1');
    for (const count of [1, 2]) {
      await clock.pass(2);
      active = true;
      // It has no report, and gets no labels.
      writer.requeue('n2');
      await turns();
      assert.equal(patches.length, count);
      active = false;
    }
  });

  it('reports a failed write, but not for a deleted node', async () => {
    const failed = stage({ facts: { dpuHost: true }, refuse: (call) => (call === 1 ? REFUSED : undefined) });
    writer.requeueAll();
    await turns();
    const logged = failed.logger.lines.map(({ msg }) => msg);
    assert.deepEqual(logged, ['patching a Node failed; retrying', 'recovered']);
    assert.equal(failed.patches.length, 2, 'a failure delays no other node');
    await clock.pass(1);
    assert.equal(failed.patches.length, 3, 'the first node again');
    writer.stop();
    const gone = stage({ facts: { dpuHost: true }, refuse: () => GONE });
    writer.requeueAll();
    await turns();
    assert.deepEqual([gone.patches.length, gone.logger.lines], [2, []]);
  });

  it('changes the recheck annotation; a deleted node counts as done, a refused write does not', async () => {
    const outcomes = [];
    for (const error of [undefined, GONE, REFUSED]) {
      const { patches } = stage({ refuse: () => error });
      outcomes.push(await writer.touch('n1'));
      assert.equal(patches[0]?.path, '/api/v1/nodes/n1');
      assert.ok(Object.keys(patches[0]?.body.metadata?.annotations ?? {})[0]?.startsWith('plumbline.dev/'));
    }
    assert.deepEqual(outcomes, [true, true, false]);
  });
});
