import assert from 'node:assert/strict';
import { CpuSet } from '../../../model/cpu-set.ts';
import { UNKNOWN_VIEW } from '../../../node-agent/assignments/view.ts';
import { createTargets } from '../../../node-agent/ovs-affinity/targets.ts';
import { cpus } from './stage.ts';

/** Seconds; the default of five, made short. */
const DELAY = 0.2;
const sleep = (seconds: number) => new Promise((resolve) => setTimeout(resolve, seconds * 1000));

describe('growing late', () => {
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

  it('ten releases within the delay: one growth, of all of them', async () => {
    for (let i = 4; i < 14; i++) {
      becomes(`0-${i}`);
      await sleep(DELAY / 10);
    }
    await sleep(DELAY * 1.5);
    assert.deepEqual(applied, ['0-3', '0-13']);
  });

  it('does not wait forever for continuous releases', async () => {
    for (let i = 4; i < 15; i++) {
      becomes(`0-${i}`);
      await sleep(DELAY * 0.6);
    }
    assert.ok(applied.length >= 2, applied.join(' '));
    assert.ok(applied.length <= 3, applied.join(' '));
  });

  it('what is taken meanwhile is left at once, and not taken later', async () => {
    becomes('0-7');
    becomes('0-2,4-7');
    assert.deepEqual(applied, ['0-3', '0-2']);
    becomes('0-2,4-5');
    await sleep(DELAY * 1.5);
    assert.deepEqual(applied, ['0-3', '0-2', '0-2,4-5']);
  });

  it('taken back before the time is over: no growth', async () => {
    becomes('0-7');
    becomes('0-3');
    await sleep(DELAY * 1.5);
    assert.deepEqual(applied, ['0-3']);
  });

  it('a source is lost while it waits: nothing is taken until all is known again, and then after a new wait', async () => {
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

  it('CPUs that poll mode drivers give up are taken late, as any are', async () => {
    pmdMask = cpus('3');
    pass();
    pmdMask = CpuSet.EMPTY;
    pass();
    assert.deepEqual(applied, ['0-3', '0-2']);
    await sleep(DELAY * 1.5);
    assert.deepEqual(applied, ['0-3', '0-2', '0-3']);
  });

  it('vacated CPUs stay clear though the view still calls them free, also where growth does not wait', () => {
    targets.vacate(cpus('1'));
    pass(true);
    assert.deepEqual(applied, ['0-3', '0,2-3']);
  });

  it('says what it waits for', () => {
    becomes('0-7');
    assert.equal(targets.wanted?.toString(), '0-3');
    assert.deepEqual(targets.why, [`4-7: free, taken after ${DELAY} s without further changes`]);
  });
});
