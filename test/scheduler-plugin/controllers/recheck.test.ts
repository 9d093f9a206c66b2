import assert from 'node:assert/strict';
import type { PodNeeds } from '../../../scheduler-plugin/cluster/pod-needs.ts';
import type { PodView } from '../../../scheduler-plugin/cluster/pod-view.ts';
import { Recheck } from '../../../scheduler-plugin/controllers/recheck.ts';
import { silent } from '../../support/logger.ts';
import { useVirtualClock } from '../../support/virtual-clock.ts';
import { podOf, reader, viewOf, withUid } from '../extender-fixture.ts';

const needs = reader.read(podOf('4'));
const needsOf = (uid: string, namespace = 'default'): PodNeeds => ({
  ...needs,
  namespace,
  request: { ...needs.request, uid },
});
/** Longer than changes are collected, in seconds. */
const SOON = 0.25;
/** The step of the clock, in seconds. */
const STEP = 0.05;

function recheckOf(
  clock: ReturnType<typeof useVirtualClock>,
  fits: (node: string, needs: PodNeeds) => boolean = () => true,
) {
  const touched: string[] = [];
  /** Seconds at which nodes were touched. */
  const times: number[] = [];
  const state = { active: true, writes: true };
  const recheck = new Recheck({
    wouldFit: (kind, node) => fits(node, kind),
    isExcluded: () => false,
    active: () => state.active,
    async touch(node) {
      touched.push(node);
      times.push(Math.round(clock.seconds * 10) / 10);
      return state.writes;
    },
    log: silent,
    nowSeconds: () => clock.seconds,
  });
  const pass = (seconds: number) => clock.pass(seconds, STEP);
  return { recheck, touched, times, state, pass };
}

describe('recheck', () => {
  const clock = useVirtualClock(0);

  it('forgets the nodes that improved while another replica was active', async () => {
    const { recheck, touched, state, pass } = recheckOf(clock);
    recheck.waits(needsOf('a'));
    state.active = false;
    recheck.improved('n1');
    await pass(SOON);
    state.active = true;
    recheck.improved('n2');
    await pass(10);
    assert.deepEqual(touched, ['n2']);
  });

  it('continues with other pods after a prediction that fails', async () => {
    const { recheck, touched, pass } = recheckOf(clock, (node, { key }) => {
      if (key !== needs.key) throw new RangeError('a mistake');
      return node === 'n2';
    });
    recheck.waits({ ...needsOf('mistake'), key: 'mistake' });
    recheck.waits(needsOf('a'));
    for (const node of ['n1', 'n2']) recheck.improved(node);
    await pass(3);
    assert.deepEqual(touched, ['n2']);
  });

  it('checks many nodes in parts, one millisecond apart', async () => {
    const { recheck, touched } = recheckOf(clock, (node) => {
      clock.seconds += 0.0006;
      return node === 'n99';
    });
    recheck.waits(needsOf('a'));
    for (let i = 0; i < 100; i++) recheck.improved(`n${i}`);
    await clock.pass(0.1);
    assert.deepEqual(touched, []);
    await clock.pass(0.006, 0.001);
    assert.deepEqual(touched, ['n99']);
  });

  it('touches nodes one after the other, a second apart, soon after the first improved, and none after it is stopped', async () => {
    const { recheck, touched, times, state, pass } = recheckOf(clock);
    state.writes = false;
    recheck.waits(needsOf('a'));
    for (const node of ['n1', 'n2']) {
      recheck.improved(node);
      await pass(STEP);
    }
    await pass(SOON);
    state.writes = true;
    await pass(5);
    const touches = touched.map((node, i) => `${node} ${times[i]}`);
    assert.deepEqual(touches, ['n1 0.1', 'n2 1.1', 'n1 2.1'], 'n1 again: its first touch failed');
    recheck.improved('n3');
    recheck.stop();
    await pass(10);
    assert.equal(times.length, 3);
  });

  it('predicts once for equal needs, and for the kinds of each namespace in turn', async () => {
    const predicted: string[] = [];
    const { recheck, pass } = recheckOf(clock, (_, { key }) => {
      predicted.push(key);
      return false;
    });
    for (let i = 0; i < 600; i++) recheck.waits({ ...needsOf(`p${i}`, 'crowd'), key: `${i % 300}` });
    recheck.waits({ ...needsOf('victim', 'victims'), key: 'of the victim' });
    recheck.improved('n1');
    await pass(SOON);
    assert.deepEqual([predicted.length, new Set(predicted).size, predicted[1]], [200, 200, 'of the victim']);
  });

  it('waits twice as long after each touch for the same pod and node, up to 256 s, and then ends the touches', async () => {
    const { recheck, times, pass } = recheckOf(clock);
    for (let second = 0; second < 600; second++) {
      recheck.waits(needsOf('a'));
      recheck.improved('n1');
      await pass(1);
    }
    const waits = times.slice(1).map((time, i) => time - times[i]!);
    // A check once a second notices that a touch is due.
    const expected = [1, 2, 4, 8, 16, 32, 64, 128, 256];
    assert.equal(waits.length, expected.length);
    for (const [i, wait] of expected.entries())
      assert.ok(waits[i]! > wait - 0.1 && waits[i]! <= wait + 1.2, `${waits}`);
  });

  it('does not let the touches for one pod delay those for another', async () => {
    const { recheck, times, pass } = recheckOf(clock);
    recheck.waits(needsOf('a'));
    for (let second = 0; second < 16; second++) {
      recheck.improved('n1');
      await pass(1);
    }
    const before = times.length;
    recheck.waits(needsOf('b', 'other'));
    recheck.improved('n1');
    await pass(1.5);
    assert.equal(times.length, before + 1);
  });

  it('touches a node that was never offered once for each attempt of a round, then with pauses', async () => {
    const { recheck, times, pass } = recheckOf(clock);
    for (let second = 0; second < 12; second++) {
      recheck.neverOffered(needsOf('a'), 'far', 3);
      await pass(1);
    }
    assert.deepEqual(times.map(Math.round), [0, 1, 2, 3, 4, 6, 10]);
  });

  it('forgets a pod 420 s after the scheduler asked about it last', async () => {
    const { recheck } = recheckOf(clock);
    for (const [uid, seconds] of [['a', 0] as const, ['b', 0] as const, ['a', 1] as const]) {
      clock.seconds = seconds;
      recheck.waits(needsOf(uid));
    }
    const waitingAt = (seconds: number) => {
      clock.seconds = seconds;
      return recheck.waiting;
    };
    assert.deepEqual([419.9, 420, 421].map(waitingAt), [2, 1, 0]);
  });

  it('forgets a pod of the namespace with the most when too many wait', async () => {
    const { recheck, touched, pass } = recheckOf(clock, (_, { key }) => key === 'of the victim');
    recheck.waits({ ...needsOf('victim', 'victims'), key: 'of the victim' });
    for (let i = 0; i < 5010; i++) recheck.waits(needsOf(`p${i}`, 'crowd'));
    assert.equal(recheck.waiting, 5000);
    recheck.improved('n1');
    await pass(SOON);
    assert.deepEqual(touched, ['n1']);
  });
});

const KVM = 'devices.kubevirt.io/kvm';
const UNSCHEDULABLE = { type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message: '0/60 nodes' };

describe('a takeover', () => {
  const viewOfLauncher = (uid: string, more: Partial<PodView> = {}): PodView => ({
    ...viewOf(withUid(podOf('500m', [KVM]), uid), { conditions: [UNSCHEDULABLE] })!,
    ...more,
  });

  const clock = useVirtualClock(0);

  it('rechecks pods that the previous replica may have refused, also if their conditions arrive within ten seconds', () => {
    const { recheck, state } = recheckOf(clock);
    recheck.unschedulable(viewOfLauncher('not-active-yet'));
    recheck.takeOver([
      viewOfLauncher('before'),
      undefined,
      viewOf(podOf('4')),
      viewOfLauncher('deleting', { deleting: true }),
      viewOfLauncher('ended', { terminal: true }),
    ]);
    assert.equal(recheck.waiting, 1);
    clock.seconds += 9.9;
    recheck.unschedulable(viewOfLauncher('late'));
    assert.equal(recheck.waiting, 2);
    state.active = false;
    recheck.unschedulable(viewOfLauncher('standby'));
    state.active = true;
    clock.seconds += 0.1;
    recheck.unschedulable(viewOfLauncher('too-late'));
    assert.equal(recheck.waiting, 2);
  });

  it('causes one touch for such a pod, or more if the scheduler asks about it', async () => {
    const { recheck, touched, pass } = recheckOf(clock);
    recheck.takeOver([viewOfLauncher('a'), viewOfLauncher('b')]);
    recheck.waits(needsOf('b'));
    recheck.improved('n1');
    await pass(SOON);
    assert.deepEqual([touched, recheck.waiting], [['n1'], 1]);
  });
});
