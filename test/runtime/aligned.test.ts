import assert from 'node:assert/strict';
import fc from 'fast-check';
import { everyAligned, untilAligned } from '../../runtime/aligned.ts';

describe('periodic work of several duties', () => {
  const cases: [number, number, number][] = [
    [5, 0, 5000],
    [5, 1000, 4000],
    [5, 2500, 2500],
    [5, 2501, 7499],
    [5, 4999, 5001],
    [5, 5001, 4999],
    [10, 3000, 7000],
    [0.01, 3, 7],
  ];
  for (const [seconds, now, expected] of cases) {
    it(`every ${seconds} s, at ${now} ms: in ${expected} ms`, () => {
      assert.ok(Math.abs(untilAligned(seconds, now) - expected) < 0.001);
    });
  }

  it('comes after half a period to one and a half, at a multiple of it', () => {
    const anyTime = fc.double({ min: 0, max: 1e9, noNaN: true });
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 600 }), anyTime, (seconds, now) => {
        const wait = untilAligned(seconds, now);
        assert.ok(wait >= seconds * 500 - 0.001 && wait <= seconds * 1500 + 0.001);
        const periods = (now + wait) / (seconds * 1000);
        assert.ok(Math.abs(periods - Math.round(periods)) < 1e-6);
      }),
    );
  });

  it('repeats until it is stopped, also by the work itself', async () => {
    let done = 0;
    await new Promise<void>((resolve) => {
      const stop = everyAligned(0.02, () => {
        if (++done < 3) return;
        stop();
        resolve();
      });
    });
    await new Promise((resolve) => setTimeout(resolve, 60));
    assert.equal(done, 3);
  });
});
