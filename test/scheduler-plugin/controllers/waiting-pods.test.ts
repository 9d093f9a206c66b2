import assert from 'node:assert/strict';
import { NeedsReader } from '../../../scheduler-plugin/cluster/pod-needs.ts';
import { WaitingPods } from '../../../scheduler-plugin/controllers/waiting-pods.ts';
import { podId, podOf } from '../extender-fixture.ts';

const reader = new NeedsReader('all');
const four = reader.read(podOf('4'));

describe('waiting pods', () => {
  const setUp = () => {
    const clock = { now: 0 };
    const removed: string[] = [];
    const pods = new WaitingPods(
      () => clock.now,
      ({ uid }) => void removed.push(uid),
    );
    return { clock, removed, pods };
  };

  it('are forgotten 420 s after the scheduler asked about them last', () => {
    const { clock, removed, pods } = setUp();
    pods.add(podId('a'), four, true);
    pods.add(podId('b'), four, true);
    clock.now = 1;
    pods.add(podId('c'), four, true);
    pods.add(podId('a'), four, true);
    clock.now = 419.9;
    pods.forgetOld();
    assert.deepEqual(removed, []);
    clock.now = 420;
    pods.forgetOld();
    assert.deepEqual([removed, [...pods.all()].map(({ uid }) => uid)], [['b'], ['c', 'a']]);
    clock.now = 421;
    pods.add(podId('d'), four, false);
    assert.deepEqual(
      [removed, pods.size, pods.get('d')?.wasRefusedHere, pods.get('d')?.lastSeen],
      [['b', 'c', 'a'], 1, false, 421],
    );
  });

  it('of a namespace with few are not removed for those of a namespace with many', () => {
    const { pods, removed } = setUp();
    pods.add(podId('victim', 'victims'), four, true);
    for (let i = 0; i < 5010; i++) pods.add(podId(`p${i}`, 'crowd'), four, true);
    assert.deepEqual([pods.size, removed.length, removed.includes('victim')], [5000, 11, false]);
  });
});
