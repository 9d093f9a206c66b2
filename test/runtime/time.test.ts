import assert from 'node:assert/strict';
import { Backoff, sleep } from '../../runtime/time.ts';

describe('time', () => {
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
