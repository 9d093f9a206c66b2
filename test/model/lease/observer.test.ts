import assert from 'node:assert/strict';
import fc from 'fast-check';
import {
  describeLease,
  isReady,
  judgeLease,
  type LeaseReading,
  type LeaseState,
  NOTHING_OBSERVED,
  observeLease,
  renewalsBeyondRestarts,
} from '../../../model/lease/observer.ts';
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

const D = 40;
const read = (renewTime: string | undefined): LeaseReading => ({ kind: 'read', renewTime });
const failed: LeaseReading = { kind: 'failed' };
const missing: LeaseReading = { kind: 'missing' };
const READINGS: ReadonlyMap<string, LeaseReading> = new Map([
  ['unrenewed', read(undefined)],
  ['missing', missing],
  ['failed', failed],
]);
/**
 * The observation after the readings up to a moment. Each reading is `<renewTime>@<second>`; the words `unrenewed`,
 * `missing` and `failed` stand for a Lease without a renewTime, for no Lease and for no answer.
 */
function observed(readings: string, moment: number, duration = D) {
  let observation = NOTHING_OBSERVED;
  for (const text of readings.split(' ').filter(Boolean)) {
    const [word = '', at] = text.split('@');
    if (Number(at) > moment) break;
    const reading = READINGS.get(word) ?? read(word);
    observation = observeLease(observation, reading, Number(at), { duration });
  }
  return observation;
}
const OLD = 'old@0 old@10 old@20 old@30 old@40 old@50';
const OUTAGE = 'a@0 b@10 failed@20 failed@30 failed@40 failed@50 failed@60';
describe('the lease observer', () => {
  const cases: readonly (readonly [what: string, readings: string, states: Readonly<Record<number, LeaseState>>])[] = [
    [
      'D3: is never alive without a renewal, and dead after a duration without one',
      'unrenewed@0 unrenewed@10 unrenewed@90',
      { 0: 'unproven', 50: 'unproven', 100: 'dead' },
    ],
    ['D3: does not trust the first read', OLD, { 0: 'unproven', 35: 'unproven', 55: 'dead' }],
    ['D3: without an answer for so long it may have changed', 'old@0 old@10 old@20', { 55: 'unproven' }],
    [
      'is alive from a change on, and dead a duration after the last one',
      'a@0 b@10 c@20 c@30 c@50 c@60',
      { 5: 'unproven', 10: 'alive', 59.9: 'alive', 60: 'dead' },
    ],
    [
      'D3: does not compare clocks: a renewTime ten minutes off, or going backwards, is as good as any',
      '2026-01-01T00:10:00Z@0 2026-01-01T00:09:50Z@10 2025-12-31T23:40:00Z@20',
      { 20: 'alive', 59: 'alive' },
    ],
    ['D4: does not change on one failed read', 'a@0 b@10 failed@20 c@30', { 20: 'alive', 30: 'alive', 60: 'alive' }],
    ['D4: does not change on one missing Lease', 'a@0 b@10 missing@20 c@30', { 20: 'alive', 60: 'alive' }],
    ['D4: does not change on one empty Lease', 'a@0 b@10 unrenewed@20 c@30', { 20: 'alive', 60: 'alive' }],
    [
      'D4: in an outage is alive until the last change + duration, then unknown',
      OUTAGE,
      { 49.9: 'alive', 50: 'unknown', 500: 'unknown' },
    ],
    ['D4: is dead if nothing changed in an outage', `${OUTAGE} b@70`, { 70: 'dead' }],
    ['stays dead in an outage', 'a@0 b@10 b@50 failed@60 failed@70', { 50: 'dead', 65: 'dead', 400: 'dead' }],
  ];
  for (const [what, readings, states] of cases) {
    it(what, () => {
      for (const moment of Object.keys(states).map(Number))
        assert.equal(judgeLease(observed(readings, moment), moment, { duration: D }).state, states[moment]);
    });
  }

  for (const [what, readings, moment, state] of [
    ['one change proves nothing', 'a@0 host@10 host@20 host@50', 49, 'unproven'],
    ['and no other follows', 'a@0 host@10 host@20 host@50', 50, 'dead'],
    ['two changes prove it', 'a@0 b@10 c@20', 20, 'alive'],
  ] as const) {
    it(`needs more than one change if foreign hosts write the Lease once at their start: ${what}`, () =>
      assert.equal(judgeLease(observed(readings, moment), moment, { duration: D, proof: 2 }).state, state));
  }

  it('needs more renewals than a crash loop gives: back-offs of 10, 20, 40, 80, 160 and 300 s', () =>
    assert.deepEqual(
      [5, 10, 11, 20, 21, 40, 60, 100, 161, 300, 301, 1000].map(renewalsBeyondRestarts),
      [3, 3, 4, 4, 5, 5, 6, 7, 8, 8, 8, 8],
    ));

  it('reports the age of the last change and until when it counts', () => {
    const observation = observed('a@0 b@10', 10);
    assert.deepEqual(judgeLease(observation, 25, { duration: D }), { state: 'alive', age: 15, until: 50 });
    assert.deepEqual(judgeLease(observation, 55, { duration: D }), { state: 'unknown', age: 45, until: undefined });
  });

  it('a host’s leaseDurationSeconds neither revives a dead DPU nor overflows a timer', () => {
    const duration = leaseSeconds(1_000_000);
    const states = [500, 700].map((at) => judgeLease(observed('a@0 b@10 b@700', at, duration), at, { duration }).state);
    assert.deepEqual(states, ['alive', 'dead']);
    assert.ok(leaseSeconds(2_147_483_647) * 1000 < 2 ** 31);
  });

  it('handles unknown by policy', () => {
    const ready = (whenUnknown: 'ready' | 'not-ready') =>
      (['alive', 'unproven', 'dead', 'unknown'] as const).filter((state) => isReady(state, whenUnknown));
    assert.deepEqual([ready('ready'), ready('not-ready')], [['alive', 'unknown'], ['alive']]);
  });

  it('is described with what to do', () => {
    const about = { lease: 'ovn-dpu-n1', duration: 60, nowMilliseconds: Date.parse('2026-11-29T09:00:00Z') };
    for (const [state, age, text] of [
      ['unproven', undefined, /ovn-dpu-n1 has no observed renewal yet; check the agent on the DPU$/],
      ['dead', 61.2, /was last renewed 2026-11-29T08:58:58Z; the limit is 60 s; check the DPU and the agent on it$/],
      ['unknown', 5, /^the API server does not answer, and lease ovn-dpu-n1 was last renewed 2026-11-29T08:59:55Z$/],
    ] as const)
      assert.match(describeLease({ state, age, until: undefined }, about), text);
  });
});

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
