import assert from 'node:assert/strict';
import { type KubeClient, KubeError } from '../../../kube/client.ts';
import { parsePausedStart } from '../../../model/launcher/paused-start.ts';
import type { MaskedInstance } from '../../../scheduler-plugin/cluster/masked-vms.ts';
import { PausedStarts } from '../../../scheduler-plugin/controllers/paused-starts.ts';
import { recordingLogger } from '../../support/logger.ts';
import { until } from '../../support/until.ts';
import { turns } from '../../support/virtual-clock.ts';

const KEY = 'default/vm';
const T1 = '2026-11-01T10:00:00Z';
const T2 = '2026-11-01T10:05:00Z';

interface Replica {
  readonly starts: PausedStarts;
  active: boolean;
}

interface Written {
  readonly uid: string;
  readonly annotations: Readonly<Record<string, string>>;
  readonly resourceVersion?: string;
}

/** A VMI in the API server, with KubeVirt behind it, and replicas of the extender that watch it. */
class World {
  vmi: MaskedInstance = {
    namespace: 'default',
    name: 'vm',
    uid: 'vmi-1',
    version: '1',
    record: { state: 'waiting' },
    phase: 'Running',
    paused: { reason: 'PausedByUser', since: T1 },
    node: 'n1',
    pods: { 'pod-1': 'n1' },
    masked: undefined,
    ofMachine: true,
  };
  unpauses = 0;
  /** The errors of the next calls. */
  readonly unpauseFailures: Error[] = [];
  readonly recordFailures: Error[] = [];
  /** KubeVirt reports late that a VM runs again. */
  lags = false;
  readonly events: string[] = [];
  readonly clock = { now: 100 };
  readonly #replicas: Replica[] = [];
  #version = 1;

  readonly calls: unknown[][] = [];
  readonly #client: Pick<KubeClient, 'patch' | 'replace'> = {
    patch: async (...call) => {
      this.calls.push(call);
      const failure = this.recordFailures.shift();
      if (failure) throw failure;
      const { uid, annotations, resourceVersion = this.vmi.version } = (call[2] as { metadata: Written }).metadata;
      if (uid !== this.vmi.uid || resourceVersion !== this.vmi.version) throw conflict();
      this.#set({ record: parsePausedStart(annotations['plumbline.dev/paused-start']) });
    },
    replace: async (...call) => {
      this.calls.push(call);
      const failure = this.unpauseFailures.shift();
      if (failure) throw failure;
      if (this.vmi.paused === undefined) throw conflict();
      this.unpauses++;
      if (!this.lags) this.#set({ paused: undefined });
    },
  };

  readonly log = recordingLogger();

  async start(active = true): Promise<Replica> {
    const replica: Replica = {
      active,
      starts: new PausedStarts({
        client: this.#client as KubeClient,
        events: { record: (_, { reason, message }) => void this.events.push(`${reason}: ${message}`) },
        active: () => replica.active,
        onResumed: () => undefined,
        log: this.log.log,
        nowSeconds: () => this.clock.now,
      }),
    };
    this.#replicas.push(replica);
    replica.starts.changed(KEY, this.vmi);
    await turns();
    return replica;
  }

  kill(replica: Replica): void {
    replica.active = false;
    replica.starts.stop();
    this.#replicas.splice(this.#replicas.indexOf(replica), 1);
  }

  #set(change: Partial<MaskedInstance>): void {
    this.vmi = { ...this.vmi, ...change, version: String(++this.#version) };
    for (const { starts } of this.#replicas) starts.changed(KEY, this.vmi);
  }

  async change(change: Partial<MaskedInstance>): Promise<void> {
    this.#set(change);
    await turns();
  }

  async report(
    state: 'pinned' | 'refused' | 'unpinned',
    { node = 'n1', podUID = 'pod-1', message = '' } = {},
  ): Promise<void> {
    const reason = state === 'pinned' ? '' : 'Empty';
    for (const { starts } of this.#replicas) starts.reported(node, [{ podUID, state, reason, message }]);
    await turns();
  }
}

const conflict = () => new KubeError(409, 'Conflict', 'the object has been modified');
const away = () => new KubeError(503, 'ServiceUnavailable', 'no endpoints available');

describe('paused starts that wait for pinning', () => {
  let world: World;
  beforeEach(() => {
    world = new World();
  });

  it('are resumed exactly once, when the agent reports the pinning', async () => {
    const { starts } = await world.start();
    assert.deepEqual([world.vmi.record, world.unpauses], [{ state: 'paused', since: T1 }, 0]);
    await world.report('pinned');
    assert.deepEqual([world.vmi.record, world.unpauses, starts.waiting], [{ state: 'resumed' }, 1, 0]);
    assert.match(world.events.join(), /ResumedAfterPinning: every vCPU is on its CPUs on node n1/);
    await world.report('pinned');
    await world.change({ paused: { reason: 'PausedByUser', since: T2 } });
    await world.report('pinned');
    assert.equal(world.unpauses, 1);
  });

  it('stay paused while pinning is refused, with an Event that gives the reason, and are resumed if it succeeds later', async () => {
    await world.start();
    await world.report('refused', { message: 'no CPU is left' });
    await world.report('refused', { message: 'no CPU is left' });
    assert.equal(world.unpauses, 0);
    const message = 'the VM stays paused: its vCPUs are not pinned on node n1 (Empty): no CPU is left';
    assert.deepEqual(world.events, [`PinningRefused: ${message}`]);
    await world.report('pinned');
    assert.equal(world.unpauses, 1);
  });

  it('are reported if the agent does not report', async () => {
    await world.start();
    assert.deepEqual(world.events, [], 'not before the time has passed');
    world.clock.now += 60;
    await world.change({});
    assert.match(world.events.join(), /PinningNotReported: .*in 60 s, no report of node n1 has said/);
    assert.equal(world.unpauses, 0);
  });

  it('use only the report of the node on which the VM runs', async () => {
    world.vmi = { ...world.vmi, pods: { 'pod-1': 'n1', target: 'n2' } };
    await world.start();
    await world.report('pinned', { node: 'n2', podUID: 'target' });
    await world.report('pinned', { node: 'n2', podUID: 'pod-1' });
    assert.equal(world.unpauses, 0);
    await world.report('pinned', { node: 'n1', podUID: 'another' });
    assert.equal(world.unpauses, 0);
    await world.change({ node: 'n2' });
    assert.equal(world.unpauses, 0, 'the last report of n2 names a pod that does not run there');
    await world.report('pinned', { node: 'n2', podUID: 'target' });
    assert.equal(world.unpauses, 1);
  });

  describe('when another replica of the extender takes over', () => {
    it('a standby does nothing, and continues from the record when it becomes active', async () => {
      const first = await world.start();
      const second = await world.start(false);
      world.kill(first);
      await world.report('pinned');
      assert.equal(world.unpauses, 0);
      second.active = true;
      second.starts.requeueAll();
      await turns();
      assert.deepEqual([world.vmi.record, world.unpauses], [{ state: 'resumed' }, 1]);
    });

    it('no second unpause follows a takeover between the unpause and its record', async () => {
      const first = await world.start();
      world.lags = true;
      world.recordFailures.push(away());
      await world.report('pinned');
      assert.deepEqual([world.unpauses, world.vmi.record?.state], [1, 'paused']);
      world.kill(first);
      await world.change({ paused: undefined });
      await world.start();
      await world.report('pinned');
      assert.deepEqual([world.vmi.record, world.unpauses], [{ state: 'resumed' }, 1]);
    });
  });

  it('are retried and reported while KubeVirt is unreachable', async function () {
    this.timeout(300_000);
    await world.start();
    world.unpauseFailures.push(away(), conflict());
    await world.report('pinned');
    assert.match(
      world.events.join(),
      /ResumeFailed: the VM stays paused: KubeVirt or the API server refused to resume it/,
    );
    const logged = world.log.lines.find(({ msg }) => msg === 'VM stays paused');
    assert.match(JSON.stringify(logged?.['err']), new RegExp(away().message));
    await until('the VM to be resumed', () => world.unpauses > 0);
    await turns();
    assert.deepEqual([world.unpauses, world.vmi.record], [1, { state: 'resumed' }]);
  });

  it('are reported if conflicts last for a minute', async () => {
    const { starts } = await world.start();
    world.unpauseFailures.push(conflict(), conflict());
    await world.report('pinned');
    assert.deepEqual(world.events, []);
    world.clock.now += 60;
    starts.requeueAll();
    await turns();
    assert.match(world.events.join(), /^ResumeFailed: /);
  });

  it('have no history after the VM was deleted', async () => {
    const { starts } = await world.start();
    await world.report('refused', { message: 'no CPU' });
    await world.report('refused', { message: 'no CPU' });
    assert.equal(world.events.length, 1);
    starts.changed(KEY, undefined);
    assert.equal(starts.waiting, 0);
    starts.changed(KEY, world.vmi);
    await turns();
    assert.deepEqual([world.events.length, starts.waiting], [2, 1]);
  });
});

describe('the record of a start', () => {
  it('is written to the VMI with that uid, and with its version only if the VMI must be unchanged', async () => {
    const world = new World();
    await world.start();
    await world.report('pinned');
    const path = '/v1/namespaces/default/virtualmachineinstances/vm';
    const patch = (text: string, more: object = {}) => {
      const metadata = { uid: 'vmi-1', annotations: { 'plumbline.dev/paused-start': text }, ...more };
      return [`/apis/kubevirt.io${path}`, 'application/merge-patch+json', { metadata }];
    };
    const unpause = [`/apis/subresources.kubevirt.io${path}/unpause`, {}];
    assert.deepEqual(world.calls, [patch(`paused ${T1}`, { resourceVersion: '1' }), unpause, patch('resumed')]);
  });
});
