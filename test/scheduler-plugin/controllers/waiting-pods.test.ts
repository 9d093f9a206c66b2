import assert from 'node:assert/strict';
import { NeedsReader } from '../../../scheduler-plugin/cluster/pod-needs.ts';
import { FORGOTTEN_AFTER_SECONDS, WaitingPods } from '../../../scheduler-plugin/controllers/waiting-pods.ts';
import { podId, podOf } from '../extender-fixture.ts';

const needs = new NeedsReader('all').read(podOf('4'));

describe('the pods that wait for a node', () => {
  const setUp = () => {
    const clock = { now: 0 };
    const removed: string[] = [];
    const pods = new WaitingPods(
      () => clock.now,
      ({ uid }) => void removed.push(uid),
    );
    return { clock, removed, pods };
  };
  const uids = (pods: ReturnType<typeof setUp>['pods']) => [...pods.all()].map(({ uid }) => uid);

  it('are forgotten 420 s after the scheduler last asked about them, when another pod is added', () => {
    const { clock, removed, pods } = setUp();
    pods.add(podId('a'), needs, true);
    clock.now = FORGOTTEN_AFTER_SECONDS - 1;
    pods.add(podId('b'), needs, true);
    assert.deepEqual([uids(pods), removed], [['a', 'b'], []]);
    clock.now = FORGOTTEN_AFTER_SECONDS;
    pods.add(podId('c'), needs, true);
    assert.deepEqual([uids(pods), removed], [['b', 'c'], ['a']]);
  });

  it('are forgotten in the order of the last question', () => {
    const { clock, removed, pods } = setUp();
    for (const uid of ['a', 'b', 'c']) pods.add(podId(uid), needs, true);
    clock.now = 100;
    pods.add(podId('a'), needs, true);
    clock.now = FORGOTTEN_AFTER_SECONDS;
    pods.forgetOld();
    assert.deepEqual([uids(pods), removed], [['a'], ['b', 'c']]);
  });

  it('keep the record of their touches when the scheduler asks again', () => {
    const { pods } = setUp();
    pods.add(podId('a'), needs, false);
    pods.get('a')?.touched.set('n1', { times: 2, last: 5 });
    pods.add(podId('a'), needs, true);
    assert.deepEqual(
      [pods.size, pods.get('a')?.wasRefusedHere, pods.get('a')?.touched.get('n1')],
      [1, true, { times: 2, last: 5 }],
    );
    pods.remove('a');
    pods.add(podId('a'), needs, true);
    assert.equal(pods.get('a')?.touched.size, 0);
  });

  it('are at most 5,000; the least recent pod is removed for a new one', () => {
    const { removed, pods } = setUp();
    for (let i = 0; i < 5000; i++) pods.add(podId(`p${i}`), needs, true);
    pods.add(podId('p0'), needs, true);
    assert.deepEqual([pods.size, removed], [5000, []]);
    pods.add(podId('new'), needs, true);
    assert.deepEqual([pods.size, removed], [5000, ['p1']]);
  });
});
