import assert from 'node:assert/strict';
import fc from 'fast-check';
import { createRenewals } from '../../../node-agent/kube-objects/lease.ts';
import { createVirtualHost } from './virtual.ts';

const DURATION = 40;
const INTERVAL = 10;
/** The maximum time between two checks. */
const PERIOD = Math.min(INTERVAL, DURATION / 4);
/** Sums of seconds are not exact. */
const EPSILON = 1e-6;

/** What happens between two checks; times are in seconds. */
type Step =
  | { readonly kind: 'renew' }
  | { readonly kind: 'pass'; readonly seconds: number }
  | { readonly kind: 'api'; readonly down: boolean }
  /** The DPU's wall clock is set. */
  | { readonly kind: 'clock'; readonly seconds: number }
  | { readonly kind: 'restart-dpu' }
  | { readonly kind: 'restart-host'; readonly keepsState: boolean };

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 4, arbitrary: fc.constant<Step>({ kind: 'renew' }) },
  {
    weight: 5,
    arbitrary: fc.double({ min: 0.1, max: 60, noNaN: true }).map((seconds): Step => ({ kind: 'pass', seconds })),
  },
  { weight: 1, arbitrary: fc.boolean().map((down): Step => ({ kind: 'api', down })) },
  {
    weight: 1,
    arbitrary: fc.integer({ min: -600, max: 600 }).map((seconds): Step => ({ kind: 'clock', seconds })),
  },
  { weight: 1, arbitrary: fc.constant<Step>({ kind: 'restart-dpu' }) },
  { weight: 1, arbitrary: fc.boolean().map((keepsState): Step => ({ kind: 'restart-host', keepsState })) },
);

/** Plays the steps and checks the invariants after each, for any history and any number of required renewals. */
async function play(steps: readonly Step[], proof: number): Promise<void> {
  const host = createVirtualHost({ interval: INTERVAL, duration: DURATION, proof });
  host.renewTime = null;
  let wall = 1_700_000_000_000;
  let renewals = createRenewals(() => wall);
  let lastWritten: string | undefined;
  /** Monotonic seconds of the last renewal that reached the API server. */
  let lastRenewal = Number.NEGATIVE_INFINITY;
  let apiUpSince = host.now;

  for (const step of steps) {
    switch (step.kind) {
      case 'renew': {
        if (host.apiDown) break;
        const next = renewals.next();
        assert.notEqual(next, lastWritten, 'each renewal is a change, whatever the clock');
        lastWritten = next;
        host.renewTime = next;
        lastRenewal = host.now;
        break;
      }
      case 'pass':
        wall += step.seconds * 1000;
        await host.pass(step.seconds);
        break;
      case 'api':
        if (host.apiDown && !step.down) apiUpSince = host.now;
        host.apiDown = step.down;
        break;
      case 'clock':
        wall += step.seconds * 1000;
        break;
      case 'restart-dpu':
        renewals = createRenewals(() => wall);
        renewals.seen(host.renewTime);
        break;
      case 'restart-host':
        host.restart(step.keepsState ? host.health.observation() : undefined);
        break;
    }
    const { state, ready, age } = host.health.current();
    const silence = host.now - lastRenewal;
    const apiUpFor = host.apiDown ? 0 : host.now - apiUpSince;
    if (lastRenewal === Number.NEGATIVE_INFINITY) assert.notEqual(state, 'alive', 'never renewed');
    // A death is noticed within the duration plus one period, counted from the time when it could be detected.
    const knowable = Math.min(silence, apiUpFor);
    if (knowable > DURATION + PERIOD + EPSILON) assert.equal(ready, false, `${state} after ${silence} s`);
    if (state === 'dead' && age !== undefined) assert.ok(age >= DURATION, 'never dead before its time');
    if (state === 'alive') assert.ok(age !== undefined && age < DURATION, `alive with a renewal of ${age} s ago`);
  }
  // In every case: if the API server is up and the DPU renews, the DPU is ready after two checks.
  host.apiDown = false;
  for (let i = 0; i < 3; i++) {
    host.renewTime = renewals.next();
    await host.pass(PERIOD);
  }
  assert.equal(host.health.current().ready, true);
}

describe('renewals, outages, clock jumps and restarts of either side', function () {
  this.timeout(300_000);
  it('keep the invariants in 1,000 random interleavings', async () => {
    let steps = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 60 }), fc.constantFrom(1, 2), async (run, proof) => {
        steps += run.length;
        await play(run, proof);
      }),
      { numRuns: 1000 },
    );
    console.log(`      ${steps} steps`);
  });
});
