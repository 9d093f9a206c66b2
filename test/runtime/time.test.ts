import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { Backoff, everyTick, secondsUntilTick, sleep, underSignals } from '../../runtime/time.ts';
import { startVirtualTime } from '../support/virtual-time.ts';

const listeners = (signal: AbortSignal) => getEventListeners(signal, 'abort').length;
const untilAborted = (signal: AbortSignal) => sleep(60, signal);
describe('work under signals', () => {
  it('ends with the first signal and its reason', async () => {
    const [first, other] = [new AbortController(), new AbortController()];
    const work = underSignals([first.signal, undefined, other.signal], undefined, untilAborted);
    other.abort(new Error('the other'));
    await assert.rejects(work, /the other/);
    assert.deepEqual([listeners(first.signal), listeners(other.signal)], [0, 0]);
  });

  it('is aborted at once if one is already aborted', async () => {
    await assert.rejects(underSignals([AbortSignal.abort(new Error('before'))], 1, untilAborted), /before/);
  });

  it('ends after its timeout', async () => {
    await assert.rejects(underSignals([], 0.01, untilAborted), { name: 'TimeoutError' });
  });

  it('ends the work that it started, and leaves nothing behind', async () => {
    const { signal } = new AbortController();
    for (let i = 0; i < 100; i++) {
      const begun = await underSignals([signal], 60, async (own) => own);
      assert.ok(begun.aborted);
    }
    assert.equal(listeners(signal), 0);
    const failing = underSignals([signal], 60, () => Promise.reject(new Error('failed')));
    await assert.rejects(failing, /failed/);
    assert.equal(listeners(signal), 0);
  });

  it('supports any number of concurrent tasks', async () => {
    const stop = new AbortController();
    const warnings: Error[] = [];
    const note = (warning: Error) => void warnings.push(warning);
    process.on('warning', note);
    const all = Array.from({ length: 50 }, () => underSignals([stop.signal], 60, untilAborted));
    assert.equal(listeners(stop.signal), 50);
    await new Promise((resolve) => setImmediate(resolve));
    stop.abort(new Error('stop'));
    assert.equal((await Promise.allSettled(all)).filter(({ status }) => status === 'rejected').length, 50);
    process.off('warning', note);
    assert.deepEqual(warnings, []);
  });
});

describe('time', () => {
  it('has ticks at the multiples of a period, at least half a period from now', () => {
    for (const [nowSeconds, expected] of [
      [0, 10],
      [4.9, 5.1],
      [5.1, 14.9],
      [20, 10],
      [1234.5, 5.5],
    ] as const) {
      const seconds = secondsUntilTick(10, nowSeconds);
      assert.ok(Math.abs(seconds - expected) < 1e-6, `at ${nowSeconds}: ${seconds}, expected ${expected}`);
    }
  });

  it('repeats work at the same ticks, whenever it began, until it is ended', async () => {
    const time = startVirtualTime();
    try {
      const ticks: [string, number][] = [];
      const note = (name: string) => () => ticks.push([name, Math.round(performance.now() / 100) / 10]);
      const end = everyTick(5, note('a'));
      await time.pass(1.5, 0.5);
      const endOther = everyTick(5, note('b'));
      await time.pass(20, 0.5);
      end();
      endOther();
      const before = ticks.length;
      await time.pass(10, 5);
      assert.equal(ticks.length, before, 'nothing after its end');
      const [a, b] = ['a', 'b'].map((wanted) => ticks.filter(([name]) => name === wanted).map(([, at]) => at));
      assert.ok(b && b.length >= 3 && a?.slice(-b.length).join() === b.join(), JSON.stringify(ticks));
    } finally {
      time.end();
    }
  });

  it('wakes with the reason of the signal, before or while sleeping', async () => {
    const reason = new Error('enough');
    await assert.rejects(sleep(60, AbortSignal.abort(reason)), reason);
    const controller = new AbortController();
    const sleeping = sleep(60, controller.signal);
    controller.abort(reason);
    await assert.rejects(sleeping, reason);
  });

  it('backs off by doubling, up to the maximum, and starts over after a reset', () => {
    const backoff = new Backoff({ first: 1, most: 8 });
    const waits = Array.from({ length: 6 }, () => backoff.next());
    for (const [index, limit] of [1, 2, 4, 8, 8, 8].entries()) {
      const wait = waits[index] ?? 0;
      assert.ok(wait >= limit / 2 && wait <= limit, `wait ${index} is ${wait}, expected up to ${limit}`);
    }
    backoff.reset();
    assert.ok(backoff.next() <= 1);
  });
});
