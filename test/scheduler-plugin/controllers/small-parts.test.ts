import assert from 'node:assert/strict';
import { mock } from 'node:test';
import { type KubeClient, KubeError } from '../../../kube/client.ts';
import type { MaskedInstance } from '../../../scheduler-plugin/cluster/masked-vms.ts';
import { NeedsReader } from '../../../scheduler-plugin/cluster/pod-needs.ts';
import { observedPod, type PodView, podViewOf } from '../../../scheduler-plugin/cluster/pod-view.ts';
import { Retries, removeUnstarted } from '../../../scheduler-plugin/controllers/evictions.ts';
import { Quarantine } from '../../../scheduler-plugin/controllers/launcher-events.ts';
import { createStartWriter, StartingVms } from '../../../scheduler-plugin/controllers/paused-starts.ts';
import { Recheck } from '../../../scheduler-plugin/controllers/recheck.ts';
import { podOf, withUid } from '../extender-fixture.ts';

const instance = (name: string, more: Partial<MaskedInstance> = {}): MaskedInstance => ({
  namespace: 'default',
  name,
  uid: `uid-${name}`,
  version: '7',
  record: { state: 'waiting' },
  phase: 'Running',
  paused: undefined,
  node: 'n1',
  pods: { pod: 'n1' },
  masked: undefined,
  ofMachine: false,
  ...more,
});
const pinned = (podUID: string) => ({ podUID, state: 'pinned', reason: '', message: '' }) as const;

describe('VMIs that are still starting', () => {
  it('are indexed by their current node', () => {
    const vms = new StartingVms();
    const [a, b] = [instance('a'), instance('b', { node: undefined })];
    assert.equal(vms.put('a', a), undefined);
    vms.put('b', b);
    assert.deepEqual([[...vms.report('n1', [])], [...vms.report('', [])], [...vms.report('n2', [])]], [['a'], [], []]);
    const moved = instance('a', { node: 'n2' });
    assert.equal(vms.put('a', moved), a);
    assert.deepEqual([[...vms.report('n1', [])], [...vms.report('n2', [])]], [[], ['a']]);
    assert.equal(vms.instances.get('a'), moved);
    vms.put('b', instance('b', { node: 'n2' }));
    assert.deepEqual([...vms.report('n2', [])], ['a', 'b']);
    vms.put('b', undefined);
    assert.deepEqual([...vms.report('n2', [])], ['a']);
  });

  for (const [what, after] of [
    ['deleted', undefined],
    ['resumed', instance('a', { record: { state: 'resumed' } })],
    ['without a record', instance('a', { record: undefined })],
  ] as const) {
    it(`are forgotten when they are ${what}`, () => {
      const vms = new StartingVms();
      const a = instance('a');
      vms.put('a', a);
      assert.equal(vms.put('a', after), a);
      assert.deepEqual([vms.instances.size, [...vms.report('n1', [])]], [0, []]);
    });
  }

  it('are pinned if the node on which they run reports it for their launcher', () => {
    const vms = new StartingVms();
    const migrating = instance('a', { pods: { target: 'n2', pod: 'n1' } });
    vms.report('n1', [pinned('pod'), pinned('target')]);
    vms.report('n2', [pinned('target')]);
    assert.deepEqual(vms.pinningOf(migrating), pinned('pod'));
    assert.deepEqual(vms.pinningOf({ ...migrating, node: 'n2' }), pinned('target'));
    assert.equal(vms.pinningOf({ ...migrating, node: undefined }), undefined);
    assert.equal(vms.pinningOf({ ...migrating, pods: { other: 'n1' } }), undefined);
    vms.report('n1', []);
    assert.equal(vms.pinningOf(migrating), undefined);
  });
});

describe('the record of a start', () => {
  it('is written to the VMI with that uid, and with its version only if the VMI must be unchanged', async () => {
    const calls: unknown[] = [];
    const writer = createStartWriter({
      patch: async (...call: unknown[]) => void calls.push(call),
      replace: async (...call: unknown[]) => void calls.push(call),
    } as unknown as KubeClient);
    const vmi = instance('vm');
    await writer.record(vmi, { state: 'paused', since: 'T' }, 'as seen');
    await writer.record(vmi, { state: 'resumed' }, 'whatever it is');
    await writer.unpause(vmi);
    const path = '/v1/namespaces/default/virtualmachineinstances/vm';
    const annotations = (text: string) => ({ 'plumbline.dev/paused-start': text });
    const merge = 'application/merge-patch+json';
    assert.deepEqual(calls, [
      [
        `/apis/kubevirt.io${path}`,
        merge,
        { metadata: { uid: 'uid-vm', annotations: annotations('paused T'), resourceVersion: '7' } },
      ],
      [`/apis/kubevirt.io${path}`, merge, { metadata: { uid: 'uid-vm', annotations: annotations('resumed') } }],
      [`/apis/subresources.kubevirt.io${path}/unpause`, {}],
    ]);
  });
});

describe('quarantined reports', () => {
  it('are counted by every replica; the active one records an Event on the Node, also when it becomes active', () => {
    const faults = new Map([['n1', { code: 'contradiction', message: 'the report lies' } as const]]);
    const [events, counts]: [unknown[], number[]] = [[], []];
    let active = false;
    const quarantine = new Quarantine({
      faults,
      events: { record: (...event) => void events.push(event) },
      active: () => active,
      metrics: { quarantinedReports: { set: (count: number) => void counts.push(count) } as never },
    });
    quarantine.changed('n1', faults.get('n1'));
    quarantine.announceAll();
    assert.deepEqual([events, counts], [[], [1]]);
    active = true;
    quarantine.announceAll();
    const message = "the report lies; Plumbline ignores this node's report";
    const said = [
      { apiVersion: 'v1', kind: 'Node', name: 'n1', uid: 'n1' },
      { type: 'Warning', reason: 'ReportQuarantined', message },
    ];
    assert.deepEqual(events, [said]);
    quarantine.changed('n1', faults.get('n1'));
    faults.clear();
    quarantine.changed('n1', undefined);
    assert.deepEqual(
      [events, counts],
      [
        [said, said],
        [1, 1, 0],
      ],
    );
  });
});

describe('retries', () => {
  beforeEach(() => mock.timers.enable({ apis: ['setTimeout'] }));
  afterEach(() => mock.timers.reset());

  it('run after 1, 2, 4 … 60 seconds, and begin again at 1 second after the key is forgotten', () => {
    const retries = new Retries();
    let tries = 0;
    const fail = () => retries.failed('a', () => void tries++);
    for (const [i, seconds] of [1, 2, 4, 8, 16, 32, 60, 60].entries()) {
      assert.equal(fail(), i + 1);
      assert.equal(retries.isWaiting('a'), true);
      mock.timers.tick(seconds * 1000 - 1);
      assert.equal(tries, i);
      mock.timers.tick(1);
      assert.deepEqual([tries, retries.isWaiting('a')], [i + 1, false]);
    }
    retries.forget('a');
    assert.equal(fail(), 1);
    retries.forget('a');
    assert.equal(retries.isWaiting('a'), false);
    mock.timers.tick(100_000);
    assert.equal(tries, 8);
  });

  it('run once for a key that fails again while it waits', () => {
    const retries = new Retries();
    let tries = 0;
    assert.deepEqual(
      [1, 2].map(() => retries.failed('a', () => void tries++)),
      [1, 2],
    );
    mock.timers.tick(10_000);
    assert.equal(tries, 1);
  });

  it('keep at most 5,000 keys, and none after a stop', () => {
    const retries = new Retries();
    const tried: string[] = [];
    const fail = (key: string) => retries.failed(key, () => void tried.push(key));
    for (let i = 0; i < 5000; i++) fail(`k${i}`);
    assert.equal(retries.isWaiting('k0'), true);
    fail('new');
    assert.deepEqual([retries.isWaiting('k0'), retries.isWaiting('k1'), retries.isWaiting('new')], [false, true, true]);
    retries.stop();
    mock.timers.tick(100_000);
    assert.deepEqual([tried, retries.isWaiting('k1')], [[], false]);
  });
});

describe('the removal of a pod', () => {
  const LAUNCHER = { 'kubevirt.io': 'virt-launcher' };
  const denied = new KubeError(
    429,
    'HTTP429',
    'admission webhook "virt-launcher-eviction-interceptor.kubevirt.io" denied the request: no',
  );
  const viewOf = (phase = 'Pending', labels: object = LAUNCHER): PodView => {
    const pod = withUid(podOf('4'), 'a', { labels });
    const bound = { ...pod, spec: { ...pod.spec, nodeName: 'n1' } };
    return podViewOf(observedPod.parse({ ...bound, status: { phase } }), new NeedsReader('all'))!;
  };
  const removal = async (pod: PodView, eviction?: unknown, deletion?: unknown) => {
    const calls: string[] = [];
    const answer = (call: string, error: unknown) => async () => {
      calls.push(call);
      if (error !== undefined) throw error;
    };
    const client = { create: answer('evict', eviction), delete: answer('delete', deletion) } as unknown as KubeClient;
    return [await removeUnstarted(client, pod), calls];
  };
  const other = new Error('admission webhook "virt-launcher-eviction-interceptor.kubevirt.io" denied the request');
  const conflict = new KubeError(409, 'Conflict', 'changed');
  const [forbidden, busy, failed] = [403, 429, 500].map((status) => new KubeError(status, 'no', 'no'));

  it('is an eviction, or returns the reason for the failure', async () => {
    assert.deepEqual(await removal(viewOf()), [{ outcome: 'evicted' }, ['evict']]);
    assert.deepEqual(await removal(viewOf(), new KubeError(404, 'NotFound', 'x')), [{ outcome: 'gone' }, ['evict']]);
    assert.deepEqual(await removal(viewOf(), conflict), [{ outcome: 'changed' }, ['evict']]);
    for (const error of [forbidden, busy]) {
      assert.deepEqual(await removal(viewOf(), error), [{ outcome: 'refused', error }, ['evict']]);
    }
    for (const error of [failed, other]) {
      assert.deepEqual(await removal(viewOf(), error), [{ outcome: 'failed', error }, ['evict']]);
    }
  });

  it('is a deletion if KubeVirt denies the eviction of a launcher that has not started', async () => {
    assert.deepEqual(await removal(viewOf(), denied), [{ outcome: 'deleted' }, ['evict', 'delete']]);
    assert.deepEqual(await removal(viewOf(), denied, conflict), [{ outcome: 'changed' }, ['evict', 'delete']]);
    for (const pod of [viewOf('Running'), viewOf('Pending', {})]) {
      assert.deepEqual(await removal(pod, denied), [{ outcome: 'refused', error: denied }, ['evict']]);
    }
  });
});

describe('pods that may wait after a takeover', () => {
  const UNSCHEDULABLE = {
    conditions: [{ type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message: '0/1' }],
  };
  const viewOf = (uid: string, more: Partial<PodView> = {}): PodView => {
    const pod = withUid(podOf('4', ['devices.kubevirt.io/kvm']), uid);
    return { ...podViewOf(observedPod.parse({ ...pod, status: UNSCHEDULABLE }), new NeedsReader('all'))!, ...more };
  };
  const setUp = () => {
    const clock = { now: 100, active: true };
    const waiting: string[] = [];
    const pods = [viewOf('a'), viewOf('deleting', { deleting: true }), viewOf('ended', { terminal: true })];
    const recheck = new Recheck({
      wouldFit: () => false,
      touch: async () => true,
      active: () => clock.active,
      now: () => clock.now,
    });
    recheck.mayWait = ({ uid }) => void waiting.push(uid);
    return { recheck, pods, waiting, clock };
  };

  it('exclude deleted and ended pods, and pods whose condition arrives after ten seconds', () => {
    const { recheck, pods, waiting, clock } = setUp();
    recheck.takeOver(pods);
    clock.now += 9.9;
    recheck.unschedulable(viewOf('late'));
    clock.active = false;
    recheck.unschedulable(viewOf('standby'));
    clock.active = true;
    clock.now += 0.1;
    recheck.unschedulable(viewOf('too-late'));
    assert.deepEqual(waiting, ['a', 'late']);
  });
});
