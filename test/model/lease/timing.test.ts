import assert from 'node:assert/strict';
import fc from 'fast-check';
import {
  DEFAULT_LEASE_SECONDS,
  formatMicroTime,
  leaseSeconds,
  leaseTimingFault,
  MAX_LEASE_SECONDS,
  nextRenewTime,
  observationPeriod,
  parseMicroTime,
} from '../../../model/lease/timing.ts';

describe('renewTime', () => {
  const now = 1_767_225_600_123_456n;

  for (const [what, previous, next] of [
    ['the first one', undefined, '2026-01-01T00:00:00.123456Z'],
    ['after a text that is no time', 'yesterday', '2026-01-01T00:00:00.123456Z'],
    ['after the same one', '2026-01-01T00:00:00.123456Z', '2026-01-01T00:00:00.123457Z'],
    ['after a later one', '2026-01-01T00:00:01.000000Z', '2026-01-01T00:00:01.000001Z'],
  ] as const) {
    it(`D1: strictly increases with any clock: ${what}`, () => assert.equal(nextRenewTime(previous, now), next));
  }

  it('is a time in microseconds, even before 1970', () => {
    const micros = fc.bigInt({ min: -60_000_000_000_000_000n, max: 60_000_000_000_000_000n });
    fc.assert(fc.property(micros, (time) => assert.equal(parseMicroTime(formatMicroTime(time)), time)));
    assert.equal(formatMicroTime(-1_500_000n), '1969-12-31T23:59:58.500000Z');
    assert.equal(formatMicroTime(-1_000_000n), '1969-12-31T23:59:59.000000Z');
  });

  it('is read in the forms of other writers', () => {
    assert.equal(parseMicroTime('2026-01-01T01:00:00.5+01:00'), 1_767_225_600_500_000n);
    assert.equal(parseMicroTime('2026-01-01T00:00:00.123456789+00:00'), now);
    for (const text of ['', '2026-01-01', '2026-13-01T00:00:00Z', 'now', '2026-01-01T00:00:00.0000000000+00:00'])
      assert.equal(parseMicroTime(text), undefined);
  });
});

describe('the duration in a Lease', () => {
  for (const [value, counts] of [
    [undefined, DEFAULT_LEASE_SECONDS],
    [Number.NaN, DEFAULT_LEASE_SECONDS],
    [-2_147_483_648, 1],
    [600, 600],
    [2_147_483_647, 600],
  ] as const) {
    it(`${value} counts as ${counts} s`, () => assert.equal(leaseSeconds(value), counts));
  }
});

describe('the lease flags', () => {
  for (const [what, renewInterval, duration] of [
    ['no duration', 10, 0],
    ['an interval as long as the duration', 10, 10],
    ['a duration that is no number', 10, Number.NaN],
    ['a duration above the limit', 10, MAX_LEASE_SECONDS + 1],
  ] as const) {
    it(`D2: ${what} is an error`, () =>
      assert.match(leaseTimingFault({ renewInterval, duration }) ?? '', /^--dpu-node-lease/));
  }

  for (const [what, renewInterval, duration, period] of [
    ['a short interval', 5, 40, 5],
    ['a long interval', 30, 40, 10],
    ['no interval', 0, 40, 10],
  ] as const) {
    it(`D2: with ${what} the Lease is read every ${period} s`, () => {
      assert.equal(leaseTimingFault({ renewInterval, duration }), undefined);
      assert.equal(observationPeriod({ renewInterval, duration }), period);
    });
  }
});
