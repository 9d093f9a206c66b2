import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import { createNeedsReader } from '../../scheduler-plugin/cluster/pod-needs.ts';
import { createRecheck } from '../../scheduler-plugin/upkeep/recheck.ts';
import { podOf } from './extender-fixture.ts';

const needs = createNeedsReader('all').read(podOf('4'));
/** Longer than changes are gathered. */
const SOON = 250;

function recheckOf(fits: (node: string) => boolean = () => true) {
  const touched: string[] = [];
  const clock = { now: 0 };
  const state = { active: true, writes: true };
  const recheck = createRecheck({
    wouldFit: (_, node) => fits(node),
    active: () => state.active,
    async touch(node) {
      touched.push(node);
      return state.writes;
    },
    now: () => clock.now,
  });
  return { recheck, touched, clock, state };
}

describe('recheck', () => {
  it('touches a node that turned good for a pod that waits', async () => {
    const { recheck, touched } = recheckOf((node) => node === 'good');
    recheck.waits('a', needs);
    recheck.improved('bad');
    recheck.improved('good');
    await delay(SOON);
    assert.deepEqual(touched, ['good']);
    recheck.stop();
  });

  it('touches nothing where nobody waits, where nothing turned good, and while another replica is active', async () => {
    const { recheck, touched, state } = recheckOf();
    recheck.improved('n1');
    recheck.waits('a', needs);
    await delay(SOON);
    assert.deepEqual(touched, []);
    state.active = false;
    recheck.improved('n1');
    await delay(SOON);
    assert.deepEqual(touched, []);
    recheck.stop();
  });

  it('tries a touch again that failed', async () => {
    const { recheck, touched, clock, state } = recheckOf();
    state.writes = false;
    recheck.waits('a', needs);
    recheck.improved('n1');
    await delay(SOON);
    state.writes = true;
    clock.now += 2;
    await delay(1200);
    assert.deepEqual(touched, ['n1', 'n1']);
    recheck.stop();
  });

  it('forgets pods that found a node', async () => {
    const { recheck, touched } = recheckOf();
    recheck.waits('a', needs);
    recheck.improved('n1');
    recheck.settled('a');
    await delay(SOON);
    assert.deepEqual([touched, recheck.waiting], [[], 0]);
    recheck.stop();
  });

  it('writes at most once a second, and ever more seldom for the same pod and node', async () => {
    const { recheck, touched, clock } = recheckOf();
    recheck.waits('a', needs);
    const improveAt = async (now: number) => {
      clock.now = now;
      recheck.improved('n1');
      await delay(SOON);
    };
    const writes: number[] = [];
    for (const now of [0, 1.1, 2.2, 3.3, 5, 7.5, 9, 12, 15.6]) {
      const before = touched.length;
      await improveAt(now);
      if (touched.length > before) writes.push(now);
    }
    // After 1, 2, 4 and 8 seconds.
    assert.deepEqual(writes, [0, 1.1, 3.3, 7.5, 15.6]);
    recheck.stop();
  });

  it('goes on at once where the scheduler has not gone round yet', async () => {
    const { recheck, touched, clock } = recheckOf();
    for (let i = 0; i < 6; i++) {
      clock.now += 1.1;
      recheck.neverOffered('a', needs, 'far', 4);
      await delay(SOON);
    }
    assert.equal(touched.length, 6, 'four rounds, then after one and after one more second');
    clock.now += 1.1;
    recheck.neverOffered('a', needs, 'far', 4);
    await delay(SOON);
    assert.equal(touched.length, 6);
    recheck.stop();
  });
});
