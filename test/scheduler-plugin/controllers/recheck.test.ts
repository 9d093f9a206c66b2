import assert from 'node:assert/strict';
import { mock } from 'node:test';
import { NeedsReader } from '../../../scheduler-plugin/cluster/pod-needs.ts';
import { Recheck } from '../../../scheduler-plugin/controllers/recheck.ts';
import { podId, podOf } from '../extender-fixture.ts';

const needs = new NeedsReader('all').read(podOf('4'));
/** Longer than changes are collected, in seconds. */
const SOON = 0.25;
/** The step of the clock, in seconds. */
const STEP = 0.05;

function recheckOf(fits: (node: string) => boolean = () => true) {
  const touched: string[] = [];
  /** Seconds at which nodes were touched. */
  const times: number[] = [];
  const clock = { now: 0 };
  const state = { active: true, writes: true };
  const recheck = new Recheck({
    wouldFit: (_, node) => fits(node),
    active: () => state.active,
    async touch(node) {
      touched.push(node);
      times.push(Math.round(clock.now * 10) / 10);
      return state.writes;
    },
    now: () => clock.now,
  });
  const pass = async (seconds: number) => {
    for (let steps = Math.round(seconds / STEP); steps > 0; steps--) {
      clock.now += STEP;
      mock.timers.tick(STEP * 1000);
      // The write is answered before time continues.
      for (let i = 0; i < 3; i++) await Promise.resolve();
    }
  };
  return { recheck, touched, times, state, pass, clock };
}

describe('recheck', () => {
  beforeEach(() => mock.timers.enable({ apis: ['setTimeout'] }));
  afterEach(() => mock.timers.reset());

  it('touches a node that now fits a waiting pod', async () => {
    const { recheck, touched, pass } = recheckOf((node) => node === 'good');
    recheck.waits(podId('a'), needs);
    recheck.improved('bad');
    recheck.improved('good');
    await pass(SOON);
    assert.deepEqual(touched, ['good']);
  });

  it('does not postpone a touch while more nodes improve', async () => {
    const { recheck, touched, pass } = recheckOf((node) => node === 'n0');
    recheck.waits(podId('a'), needs);
    for (let i = 0; i < 10; i++) {
      recheck.improved(`n${i}`);
      await pass(STEP);
    }
    assert.deepEqual(touched, ['n0']);
  });

  it('forgets the nodes that improved while another replica was active', async () => {
    const { recheck, touched, state, pass } = recheckOf();
    recheck.waits(podId('a'), needs);
    state.active = false;
    recheck.improved('n1');
    await pass(SOON);
    state.active = true;
    recheck.improved('n2');
    await pass(10);
    assert.deepEqual(touched, ['n2']);
  });

  it('checks many nodes in parts, one millisecond apart', async () => {
    const { recheck, touched, clock } = recheckOf((node) => {
      clock.now += 0.0006;
      return node === 'n99';
    });
    recheck.waits(podId('a'), needs);
    for (let i = 0; i < 100; i++) recheck.improved(`n${i}`);
    mock.timers.tick(100);
    assert.deepEqual(touched, []);
    for (let part = 0; part < 6; part++) mock.timers.tick(1);
    assert.deepEqual(touched, ['n99']);
  });

  it('retries a failed touch, and touches no node after it is stopped', async () => {
    const { recheck, times, state, pass } = recheckOf();
    state.writes = false;
    recheck.waits(podId('a'), needs);
    recheck.improved('n1');
    await pass(SOON);
    state.writes = true;
    await pass(5);
    assert.deepEqual(times, [0.1, 1.1]);
    recheck.improved('n2');
    recheck.stop();
    await pass(10);
    assert.equal(times.length, 2);
  });

  it('writes at most once a second, one node after the other', async () => {
    const { recheck, touched, times, pass } = recheckOf();
    recheck.waits(podId('a'), needs);
    for (const node of ['n1', 'n2', 'n3']) recheck.improved(node);
    await pass(10);
    assert.deepEqual(
      [touched, times],
      [
        ['n1', 'n2', 'n3'],
        [0.1, 1.1, 2.1],
      ],
    );
  });
});
