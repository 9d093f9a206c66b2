import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import type { KubeClient } from '../../kube/client.ts';
import { createLeaderElection, type LeaderElection, type LeaseRecord } from '../../kube/leader-election.ts';
import { silent } from '../support/logger.ts';
import { type ApiFixture, startApi } from './api-fixture.ts';

const PATH = '/apis/coordination.k8s.io/v1/namespaces/default/leases/leader';
const DURATION = 2;

interface Candidate extends LeaderElection {
  /** What its clock is ahead by, in seconds. */
  readonly clock: { skip: number };
  readonly told: boolean[];
  stop(): Promise<void>;
}

describe('leader election', function () {
  this.timeout(120_000);
  let api: ApiFixture;
  const candidates: Candidate[] = [];

  beforeEach(async () => {
    api = await startApi();
  });
  afterEach(async () => {
    await Promise.all(candidates.splice(0).map((one) => one.stop()));
    await api.stop();
  });

  const candidate = (identity: string, client: KubeClient = api.client, record?: LeaseRecord): Candidate => {
    const signal = new AbortController();
    const told: boolean[] = [];
    const clock = { skip: 0 };
    const election = createLeaderElection({
      client,
      namespace: 'default',
      name: 'leader',
      identity,
      duration: DURATION,
      interval: 0.2,
      ...(record && { record }),
      onChange: (leads) => void told.push(leads),
      log: silent,
      now: () => performance.now() / 1000 + clock.skip,
    });
    const running = election.run(signal.signal);
    const one: Candidate = {
      clock,
      told,
      run: election.run,
      isLeader: election.isLeader,
      get settled() {
        return election.settled;
      },
      get holder() {
        return election.holder;
      },
      release: election.release,
      async stop() {
        signal.abort();
        await running;
      },
    };
    candidates.push(one);
    return one;
  };
  const eventually = async (what: string, holds: () => boolean, seconds = 10) => {
    const deadline = performance.now() + seconds * 1000;
    while (!holds()) {
      if (performance.now() > deadline) throw new Error(`waited ${seconds} s for ${what}`);
      await delay(20);
    }
  };
  const holder = async () =>
    ((await api.client.get(PATH)) as { spec: { holderIdentity: string; leaseTransitions: number } }).spec;

  it('chooses one of several, and all of them know', async () => {
    const all = ['a', 'b', 'c'].map((identity) => candidate(identity));
    await eventually('all to be settled', () => all.every(({ settled }) => settled));
    const leads = (await holder()).holderIdentity;
    await eventually('all to name the same holder', () => all.every((one) => one.holder === leads));
    await eventually('one to lead', () => all.some((one) => one.isLeader()));
    await delay(DURATION * 1000);
    assert.equal(all.filter((one) => one.isLeader()).length, 1);
  });

  it('a holder whose clock has gone past its deadline does not lead, whatever its timers have not told it', async () => {
    const first = candidate('a');
    await eventually('the first to lead', () => first.isLeader());
    first.clock.skip += DURATION;
    assert.ok(!first.isLeader());
  });

  for (const leaves of ['gives the lease up', 'ends without a word']) {
    it(`what a leader has written is read by the next one before it leads, if the first ${leaves}`, async () => {
      const log: string[] = [];
      let text = 'early';
      const recordOf = (identity: string): LeaseRecord => ({
        annotation: 'plumbline.dev/record',
        write: () => (identity === 'a' ? text : undefined),
        read: (found) => void log.push(`${identity} ${found}`),
      });
      const first = candidate('a', api.client, recordOf('a'));
      await eventually('the first to lead', () => first.isLeader());
      text = 'late';
      await delay(500);
      const second = candidate('b', api.client, recordOf('b'));
      if (leaves === 'gives the lease up') {
        text = 'last';
        await first.release();
      } else await first.stop();
      await eventually('the second to lead', () => second.isLeader());
      assert.deepEqual(log, ['a undefined', leaves === 'gives the lease up' ? 'b last' : 'b late']);
    });
  }

  it('a lease that runs out while its renewal is under way is lost and won anew', async () => {
    let suspended = 0;
    const first: Candidate = candidate('a', {
      ...api.client,
      async get(path, options) {
        if (suspended++ === 2) first.clock.skip += DURATION;
        return api.client.get(path, options);
      },
    });
    await eventually('the renewal to have been late', () => suspended > 4);
    assert.deepEqual(first.told, [true, false, true]);
    assert.ok(first.isLeader());
  });

  it('passes on when the holder has vanished, after its duration and no sooner', async () => {
    const first = candidate('a');
    await eventually('the first to lead', () => first.isLeader());
    const second = candidate('b');
    await eventually('the second to know', () => second.settled);
    await first.stop();
    const begun = performance.now();
    await eventually('the second to lead', () => second.isLeader());
    const took = (performance.now() - begun) / 1000;
    assert.ok(took >= DURATION * 0.7 && took < DURATION + 3, `${took} s`);
    assert.deepEqual([(await holder()).holderIdentity, (await holder()).leaseTransitions], ['b', 2]);
  });

  it('passes on at once when the holder gives it up', async () => {
    const first = candidate('a');
    await eventually('the first to lead', () => first.isLeader());
    const second = candidate('b');
    await eventually('the second to know', () => second.settled);
    await first.stop();
    await first.release();
    assert.ok(!first.isLeader());
    await eventually('the second to lead', () => second.isLeader(), DURATION);
    assert.deepEqual(first.told, [true, false]);
  });

  it('who has given it up takes no more part, though it still runs', async () => {
    for (let i = 0; i < 4; i++) {
      const first = candidate(`a${i}`);
      await eventually('the first to lead', () => first.isLeader());
      await delay(50 * i);
      await first.release();
      await delay(DURATION * 300);
      assert.ok(!first.isLeader());
      assert.equal((await holder()).holderIdentity, '');
    }
  });

  it('who finds the Lease deleted waits for the duration, since its holder may have renewed it unseen', async () => {
    const first = candidate('a');
    await eventually('the first to lead', () => first.isLeader());
    let looks = 0;
    const second: Candidate = candidate('b', {
      ...api.client,
      async get(path, options) {
        looks++;
        // For longer than the duration nothing was seen; meanwhile the holder has renewed, and the Lease was deleted.
        if (looks === 3) second.clock.skip += DURATION;
        if (looks === 3) await api.client.delete(PATH);
        return api.client.get(path, options);
      },
    });
    while (looks < 8) {
      assert.ok(!(first.isLeader() && second.isLeader()));
      await delay(10);
    }
    assert.ok(first.isLeader());
    await first.stop();
    await api.client.delete(PATH);
    await eventually('the second to lead', () => second.isLeader());
  });

  it('who was too slow to make the Lease waits for the duration, though it never reads it', async () => {
    let first: Candidate | undefined;
    const second: Candidate = candidate('b', {
      ...api.client,
      async create(path, body, options) {
        if (first === undefined) {
          first = candidate('a');
          await eventually('the first to lead', () => first?.isLeader() === true);
        }
        return api.client.create(path, body, options);
      },
      async get(path, options) {
        if (first !== undefined) await api.client.delete(PATH).catch(() => undefined);
        return api.client.get(path, options);
      },
    });
    const end = performance.now() + DURATION * 600;
    while (performance.now() < end) {
      assert.ok(!(first?.isLeader() && second.isLeader()));
      await delay(10);
    }
    assert.ok(!second.isLeader());
  });

  it('a Lease that is deleted under its holder is made anew, and at no time do two lead', async () => {
    const all = ['a', 'b', 'c'].map((identity) => candidate(identity));
    await eventually('all to be settled', () => all.every(({ settled }) => settled));
    await eventually('one to lead', () => all.some((one) => one.isLeader()));
    for (let i = 0; i < 5; i++) {
      await api.client.delete(PATH).catch(() => undefined);
      for (let looks = 0; looks < 40; looks++) {
        assert.ok(all.filter((one) => one.isLeader()).length <= 1);
        await delay(10);
      }
    }
    await eventually('one to lead', () => all.some((one) => one.isLeader()));
    assert.equal((await holder()).holderIdentity, ['a', 'b', 'c'][all.findIndex((one) => one.isLeader())]);
  });
});
