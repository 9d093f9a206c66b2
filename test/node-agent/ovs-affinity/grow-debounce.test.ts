import assert from 'node:assert/strict';
import { mock } from 'node:test';
import { CpuSet } from '../../../model/cpu-set.ts';
import { UNKNOWN_VIEW } from '../../../node-agent/assignments/view.ts';
import { createGrowDebounce, createTargets } from '../../../node-agent/ovs-affinity/targets.ts';
import { cpus } from './stage.ts';

/** In seconds; shorter than the default of five. */
const DELAY = 0.2;
const sleep = (seconds: number) => new Promise((resolve) => setTimeout(resolve, seconds * 1000));

describe('delayed growth', () => {
  let applied: string[];
  let free: string;
  let pmdMask: CpuSet;
  let problems: string[];
  let targets: ReturnType<typeof createTargets>;

  const pass = (mayGrow = false) => {
    const view = { ...UNKNOWN_VIEW, problems, holds: problems, free: cpus(free) };
    const goal = targets.target(view, CpuSet.EMPTY, mayGrow);
    const text = 'only' in goal ? goal.only.toString() : `not ${goal.avoid}`;
    if (applied.at(-1) !== text) applied.push(text);
  };
  const becomes = (list: string) => {
    free = list;
    pass();
  };

  beforeEach(() => {
    applied = [];
    pmdMask = CpuSet.EMPTY;
    problems = [];
    targets = createTargets(
      {
        growthDelay: DELAY,
        isolated: () => CpuSet.EMPTY,
        pmdMask: () => pmdMask,
        machine: () => cpus('0-15'),
        containers: () => ({ guaranteed: [], others: [] }),
        now: () => performance.now(),
      },
      () => pass(true),
    );
    becomes('0-3');
  });
  afterEach(() => targets.reset());

  it('ten releases within the delay cause one growth to all of them', async () => {
    for (let i = 4; i < 14; i++) {
      becomes(`0-${i}`);
      await sleep(DELAY / 10);
    }
    await sleep(DELAY * 1.5);
    assert.deepEqual(applied, ['0-3', '0-13']);
  });

  it('continuous releases do not delay it forever', async () => {
    for (let i = 4; i < 15; i++) {
      becomes(`0-${i}`);
      await sleep(DELAY * 0.6);
    }
    assert.ok(applied.length >= 2, applied.join(' '));
    assert.ok(applied.length <= 3, applied.join(' '));
  });

  it('CPUs that are taken meanwhile are left at once, and not used later', async () => {
    becomes('0-7');
    becomes('0-2,4-7');
    assert.deepEqual(applied, ['0-3', '0-2']);
    becomes('0-2,4-5');
    await sleep(DELAY * 1.5);
    assert.deepEqual(applied, ['0-3', '0-2', '0-2,4-5']);
  });

  it('CPUs that are taken back before the delay is over cause no growth', async () => {
    becomes('0-7');
    becomes('0-3');
    await sleep(DELAY * 1.5);
    assert.deepEqual(applied, ['0-3']);
  });

  it('a source that is lost meanwhile prevents it until all sources are back and another delay is over', async () => {
    becomes('0-7');
    problems = ['the kubelet does not answer'];
    pass();
    await sleep(DELAY * 1.5);
    assert.deepEqual(applied, ['0-3']);
    problems = [];
    pass();
    assert.deepEqual(applied, ['0-3']);
    await sleep(DELAY * 1.5);
    assert.deepEqual(applied, ['0-3', '0-7']);
  });

  it('CPUs that poll mode drivers give up are used after the delay', async () => {
    pmdMask = cpus('3');
    pass();
    pmdMask = CpuSet.EMPTY;
    pass();
    assert.deepEqual(applied, ['0-3', '0-2']);
    await sleep(DELAY * 1.5);
    assert.deepEqual(applied, ['0-3', '0-2', '0-3']);
  });

  it('vacated CPUs stay unused while the view still lists them as free, even without a delay', () => {
    targets.vacate(cpus('1'));
    pass(true);
    assert.deepEqual(applied, ['0-3', '0,2-3']);
  });

  it('the status names the CPUs that wait for the delay', () => {
    becomes('0-7');
    assert.equal(targets.lastTarget?.toString(), '0-3');
    assert.deepEqual(targets.why, [`4-7: free, taken after ${DELAY} s without further changes`]);
  });
});

describe('the wait of a growth', () => {
  beforeEach(() => mock.timers.enable({ apis: ['setTimeout'] }));
  afterEach(() => mock.timers.reset());

  it('lasts at most four delays, however often the set changes', () => {
    let now = 0;
    let due = 0;
    const debounce = createGrowDebounce({ delay: 1, now: () => now, onDue: () => due++ });
    const pass = (milliseconds: number) => {
      now += milliseconds;
      mock.timers.tick(milliseconds);
    };
    for (let i = 0; i < 5; i++) {
      debounce.request(cpus(`0-${i}`));
      pass(i < 4 ? 900 : 399);
    }
    assert.deepEqual([now, due, debounce.pending?.toString()], [3999, 0, '0-4']);
    pass(1);
    assert.deepEqual([now, due, debounce.pending], [4000, 1, undefined]);
  });
});
