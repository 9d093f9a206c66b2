import assert from 'node:assert/strict';
import fc from 'fast-check';
import {
  isReady,
  judgeLease,
  type LeaseReading,
  type LeaseState,
  NOTHING_OBSERVED,
  type ObserverOptions,
  observeLease,
} from '../../model/lease/observer.ts';
import { type LeaseShape, leaseForm, repairLease } from '../../model/lease/repair.ts';
import {
  checkLeaseTiming,
  DEFAULT_LEASE_SECONDS,
  LeaseTimingError,
  leaseSeconds,
  MAX_LEASE_SECONDS,
  nextRenewTime,
  observationPeriod,
  parseMicroTime,
} from '../../model/lease/timing.ts';
import type { OwnerReference } from '../../model/shapes.ts';

const D = 40;
const read = (renewTime: string | undefined): LeaseReading => ({ kind: 'read', renewTime });
const failed: LeaseReading = { kind: 'failed' };
const missing: LeaseReading = { kind: 'missing' };

/** States at the given moments, each after the earlier readings. */
function states(
  readings: readonly (readonly [at: number, reading: LeaseReading])[],
  moments: readonly number[],
  options: ObserverOptions = { duration: D },
): LeaseState[] {
  return moments.map((moment) => {
    const seen = readings
      .filter(([at]) => at <= moment)
      .reduce((before, [at, reading]) => observeLease(before, reading, at, options), NOTHING_OBSERVED);
    return judgeLease(seen, moment, options).state;
  });
}

describe('the lease observer', () => {
  it('is unproven before the first read', () => {
    assert.deepEqual(states([], [0, 1e9]), ['unproven', 'unproven']);
  });

  it('D3: is never alive without a renewal, and dead after a duration without one', () => {
    assert.deepEqual(
      states(
        [
          [0, read(undefined)],
          [10, read(undefined)],
          [90, read(undefined)],
        ],
        [0, 50, 100],
      ),
      ['unproven', 'unproven', 'dead'],
    );
  });

  it('D3: does not trust the first read', () => {
    const stale: [number, LeaseReading][] = [0, 10, 20, 30, 40, 50].map((at) => [at, read('old')]);
    assert.deepEqual(states(stale, [0, 35, 55]), ['unproven', 'unproven', 'dead']);
    assert.deepEqual(
      states(stale.slice(0, 3), [55]),
      ['unproven'],
      'without an answer for so long it may have changed',
    );
  });

  it('is alive from a change on, and dead a duration after the last one', () => {
    const readings: [number, LeaseReading][] = [
      [0, read('a')],
      [10, read('b')],
      [20, read('c')],
      [30, read('c')],
      [50, read('c')],
      [60, read('c')],
    ];
    assert.deepEqual(states(readings, [5, 10, 59.9, 60]), ['unproven', 'alive', 'alive', 'dead']);
  });

  it('accepts the first renewal of a Lease that it saw unrenewed', () => {
    assert.deepEqual(
      states(
        [
          [0, missing],
          [1, read(undefined)],
          [5, read('a')],
        ],
        [4, 5],
      ),
      ['unproven', 'alive'],
    );
  });

  it('D3: does not compare clocks: a renewTime ten minutes off, or going backwards, is as good as any', () => {
    const times = ['2026-01-01T00:10:00Z', '2026-01-01T00:09:50Z', '2025-12-31T23:40:00Z'];
    assert.deepEqual(
      states(
        times.map((time, i) => [i * 10, read(time)]),
        [20, 59],
      ),
      ['alive', 'alive'],
    );
  });

  it('D4: does not change on one failed read or one missing Lease', () => {
    for (const glitch of [failed, missing, read(undefined)]) {
      assert.deepEqual(
        states(
          [
            [0, read('a')],
            [10, read('b')],
            [20, glitch],
            [30, read('c')],
          ],
          [20, 30, 60],
        ),
        ['alive', 'alive', 'alive'],
      );
    }
  });

  it('D4: in an outage is alive until the last change + duration, then unknown', () => {
    const outage: [number, LeaseReading][] = [
      [0, read('a')],
      [10, read('b')],
      ...[20, 30, 40, 50, 60].map((at): [number, LeaseReading] => [at, failed]),
    ];
    assert.deepEqual(states(outage, [49.9, 50, 500]), ['alive', 'unknown', 'unknown']);
    assert.deepEqual(states([...outage, [70, read('b')]], [70]), ['dead']);
    assert.deepEqual(states([...outage, [70, read('z')]], [70, 109, 110]), ['alive', 'alive', 'unknown']);
  });

  it('stays dead in an outage, and recovers with a change', () => {
    const died: [number, LeaseReading][] = [
      [0, read('a')],
      [10, read('b')],
      [50, read('b')],
      [60, failed],
    ];
    assert.deepEqual(states([...died, [70, failed]], [50, 65, 400]), ['dead', 'dead', 'dead']);
    assert.deepEqual(states([...died, [70, read('c')]], [70]), ['alive']);
  });

  it('needs more than one change if foreign hosts write the Lease once at their start', () => {
    const observe = { duration: D, proof: 2 };
    assert.deepEqual(
      states(
        [
          [0, read('a')],
          [10, read('host')],
          [20, read('host')],
          [50, read('host')],
        ],
        [10, 49, 50],
        observe,
      ),
      ['unproven', 'unproven', 'dead'],
    );
    assert.deepEqual(
      states(
        [
          [0, read('a')],
          [10, read('b')],
          [20, read('c')],
        ],
        [10, 20],
        observe,
      ),
      ['unproven', 'alive'],
    );
    assert.deepEqual(
      states(
        [
          [0, read('a')],
          [10, read('b')],
          [60, read('c')],
        ],
        [60],
        observe,
      ),
      ['unproven'],
    );
    assert.deepEqual(
      states(
        [
          [0, read('a')],
          [10, read('host')],
          [20, failed],
        ],
        [60],
        observe,
      ),
      ['unproven'],
    );
  });

  it('reports the age of the last change and until when it counts', () => {
    const seen = observeLease(observeLease(NOTHING_OBSERVED, read('a'), 0, { duration: D }), read('b'), 10, {
      duration: D,
    });
    assert.deepEqual(judgeLease(seen, 25, { duration: D }), { state: 'alive', age: 15, until: 50 });
    assert.deepEqual(judgeLease(seen, 55, { duration: D }), { state: 'unknown', age: 45, until: undefined });
  });

  it('handles unknown by policy', () => {
    assert.deepEqual(
      (['alive', 'unproven', 'dead', 'unknown'] as const).map((state) => isReady(state, 'ready')),
      [true, false, false, true],
    );
    assert.deepEqual(
      (['alive', 'unproven', 'dead', 'unknown'] as const).map((state) => isReady(state, 'not-ready')),
      [true, false, false, false],
    );
  });

  const event = fc.record({
    after: fc.double({ min: 0.1, max: 30, noNaN: true }),
    what: fc.constantFrom('renew', 'read', 'read', 'fail', 'delete', 'create'),
  });

  it('keeps its invariants in any interleaving of renewals, reads, failures and deletions', () => {
    fc.assert(
      fc.property(fc.array(event, { maxLength: 80 }), (events) => {
        let now = 0;
        let lease: { renewTime: string | undefined } | undefined = { renewTime: undefined };
        let renewals = 0;
        let seen = NOTHING_OBSERVED;
        let lastRenewal = Number.NEGATIVE_INFINITY;
        let lastAnswer = Number.NEGATIVE_INFINITY;
        for (const { after, what } of events) {
          now += after;
          const before = judgeLease(seen, now, { duration: D }).state;
          if (what === 'renew' && lease !== undefined) {
            lease = { renewTime: `r${++renewals}` };
            lastRenewal = now;
          } else if (what === 'delete') lease = undefined;
          else if (what === 'create') lease ??= { renewTime: undefined };
          else if (what === 'fail') {
            seen = observeLease(seen, failed, now, { duration: D });
            assert.equal(judgeLease(seen, now, { duration: D }).state, before, 'a failed read changes nothing');
          } else if (what === 'read') {
            seen = observeLease(seen, lease === undefined ? missing : read(lease.renewTime), now, { duration: D });
            lastAnswer = now;
          }
          const { state } = judgeLease(seen, now, { duration: D });
          if (renewals === 0) assert.ok(state === 'unproven' || state === 'dead', state);
          if (state === 'dead')
            assert.ok(lastAnswer - D >= (seen.changedAt ?? seen.since ?? 0), 'dead needs an answer a duration later');
          if (state === 'unknown') assert.ok(now - lastAnswer > 0, 'a fresh answer leaves nothing unknown');
          if (state === 'alive') assert.ok(now - (seen.changedAt ?? Number.NEGATIVE_INFINITY) < D);
          if (what === 'read' && lease !== undefined && renewals > 0) {
            if (lastRenewal === now) assert.notEqual(state, 'dead');
          }
        }
      }),
    );
  });

  it('is never dead with a renewing DPU and mostly working reads; dead within a duration and a period after it stops', () => {
    const period = observationPeriod({ renewInterval: 10, duration: D });
    fc.assert(
      fc.property(
        fc.double({ min: 0, max: 10, noNaN: true }),
        fc.array(fc.boolean(), { maxLength: 40 }),
        (phase, outcomes) => {
          let seen = NOTHING_OBSERVED;
          const renewTimeAt = (now: number) => read(`r${Math.floor((now + phase) / 10)}`);
          let now = 0;
          let failures = 0;
          for (const wanted of outcomes) {
            // Never so many failures in a row that a duration passes without an answer.
            const ok = wanted || failures >= 1;
            failures = ok ? 0 : failures + 1;
            seen = observeLease(seen, ok ? renewTimeAt(now) : failed, now, { duration: D });
            if (now > 30) assert.equal(judgeLease(seen, now, { duration: D }).state, 'alive');
            now += period;
          }
          const stopped = now;
          for (; now <= stopped + D + period; now += period)
            seen = observeLease(seen, renewTimeAt(stopped), now, { duration: D });
          assert.notEqual(judgeLease(seen, stopped + D + period, { duration: D }).state, 'alive');
        },
      ),
    );
  });
});

describe('the host’s repair of its DPU Lease', () => {
  const subject = { nodeName: 'n1', nodeUid: 'u1', duration: 40 };
  const good = leaseForm(subject);
  const [owner] = good.ownerReferences;
  const lease = (ownerReferences: readonly OwnerReference[] | null, spec: LeaseShape['spec'] = {}): LeaseShape => ({
    metadata: { ownerReferences },
    spec: { holderIdentity: good.holderIdentity, leaseDurationSeconds: 40, ...spec },
  });

  it('D1: creates it with owner, holder and duration, and without a renewTime', () => {
    const repair = repairLease(undefined, subject);
    assert.deepEqual(repair, { kind: 'create', form: good });
    assert.deepEqual(good, {
      ownerReferences: [
        { apiVersion: 'v1', kind: 'Node', name: 'n1', uid: 'u1', controller: true, blockOwnerDeletion: false },
      ],
      holderIdentity: 'ovnkube-dpu-node',
      leaseDurationSeconds: 40,
    });
  });

  const { blockOwnerDeletion: _, ...unblocked } = owner;
  const cases: [what: string, lease: LeaseShape, faults: string[]][] = [
    ['leaves a good Lease unchanged', lease([owner]), []],
    ['treats an absent boolean as false', lease([unblocked]), []],
    ['adds an owner', lease(null), ['no-owner']],
    ['D1: stops blocking the deletion of the Node', lease([{ ...owner, blockOwnerDeletion: true }]), ['owner-fields']],
    ['D5: replaces the old uid of the Node with the new one', lease([{ ...owner, uid: 'old' }]), ['foreign-owner']],
    ['D5: leaves only one owner', lease([{ ...owner, uid: 'old' }, owner]), ['foreign-owner']],
    ['D1: corrects a foreign holder', lease([owner], { holderIdentity: 'another' }), ['holder']],
    ['follows a changed duration', lease([owner], { leaseDurationSeconds: 30 }), ['duration']],
    ['does all of this at once', { metadata: {} }, ['no-owner', 'holder', 'duration']],
  ];
  for (const [what, found, faults] of cases) {
    it(what, () => {
      const repair = repairLease(found, subject);
      assert.deepEqual(repair, faults.length === 0 ? { kind: 'none' } : { kind: 'repair', form: good, faults });
    });
  }
});

describe('renewTime', () => {
  const now = 1_767_225_600_123_456n;

  it('is a MicroTime', () => {
    assert.equal(nextRenewTime(undefined, now), '2026-01-01T00:00:00.123456Z');
    assert.equal(nextRenewTime('2020-01-01T00:00:00Z', now), '2026-01-01T00:00:00.123456Z');
    assert.equal(nextRenewTime('no time', now), '2026-01-01T00:00:00.123456Z');
  });

  it('D1: strictly increases with any clock', () => {
    const micros = fc.bigInt({ min: 0n, max: 4_000_000_000_000_000n });
    fc.assert(
      fc.property(fc.array(micros, { minLength: 2 }), (clocks) => {
        let last: string | undefined;
        for (const clock of clocks) {
          const next = nextRenewTime(last, clock);
          if (last !== undefined) assert.ok((parseMicroTime(next) ?? 0n) > (parseMicroTime(last) ?? 0n));
          last = next;
        }
      }),
    );
  });

  it('is read in the forms of other writers', () => {
    assert.equal(parseMicroTime('2026-01-01T01:00:00.5+01:00'), 1_767_225_600_500_000n);
    assert.equal(parseMicroTime('2026-01-01T00:00:00.123456789Z'), now);
    for (const text of ['', '2026-01-01', '2026-13-01T00:00:00Z', 'now']) assert.equal(parseMicroTime(text), undefined);
  });
});

describe('the duration in a Lease', () => {
  for (const [said, counts] of [
    [undefined, DEFAULT_LEASE_SECONDS],
    [null, DEFAULT_LEASE_SECONDS],
    [Number.NaN, DEFAULT_LEASE_SECONDS],
    [-2_147_483_648, 1],
    [0, 1],
    [1, 1],
    [40, 40],
    [600, 600],
    [601, 600],
    [1_000_000, 600],
    [2_147_483_647, 600],
    [Number.POSITIVE_INFINITY, 600],
  ] as const) {
    it(`${said} counts as ${counts} s`, () => assert.equal(leaseSeconds(said), counts));
  }

  it('a host’s leaseDurationSeconds neither revives a dead DPU nor overflows a timer', () => {
    const readings: [number, LeaseReading][] = [
      [0, read('a')],
      [10, read('b')],
      [700, read('b')],
    ];
    const options = { duration: leaseSeconds(1_000_000) };
    assert.deepEqual(states(readings, [500, 700], options), ['alive', 'dead']);
    assert.ok(leaseSeconds(2_147_483_647) * 1000 < 2 ** 31);
  });
});

describe('the lease flags', () => {
  for (const [renewInterval, duration] of [
    [-1, 40],
    [10, 0],
    [10, -1],
    [10, 10],
    [20, 10],
    [Number.NaN, 40],
    [10, Number.NaN],
    [10, MAX_LEASE_SECONDS + 1],
    [10, 2_147_483_647],
  ] as const) {
    it(`D2: ${renewInterval}/${duration} is an error`, () => {
      assert.throws(() => checkLeaseTiming({ renewInterval, duration }), LeaseTimingError);
    });
  }

  for (const [renewInterval, duration, period] of [
    [10, 40, 10],
    [5, 20, 5],
    [30, 40, 10],
    [0, 40, 10],
  ] as const) {
    it(`D2: ${renewInterval}/${duration} is valid and checked every ${period} s`, () => {
      checkLeaseTiming({ renewInterval, duration });
      assert.equal(observationPeriod({ renewInterval, duration }), period);
    });
  }
});
