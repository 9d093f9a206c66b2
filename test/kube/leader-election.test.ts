import assert from 'node:assert/strict';
import type { KubeClient, RequestOptions } from '../../kube/client.ts';
import { KubeError } from '../../kube/errors.ts';
import { createLeaderElection, type LeaderElection, type LeaseRecord } from '../../kube/leader-election.ts';
import { eventually } from '../support/eventually.ts';
import { silent } from '../support/logger.ts';
import { type ApiFixture, startApi } from './api-fixture.ts';

const PATH = '/apis/coordination.k8s.io/v1/namespaces/default/leases/leader';
const DURATION = 2;

/** Time passes only when a test moves the clock, so no Lease expires by itself on a busy machine. */
interface Candidate extends LeaderElection {
  /** Seconds by which its clock is ahead of the common one. */
  readonly clock: { skip: number };
  /** How often it has read the Lease. */
  readonly looks: number;
  readonly notified: boolean[];
  /** Once it no longer takes part. */
  readonly ended: Promise<void>;
  stop(): Promise<void>;
}

/** Requests have no timeout: the candidates' own limit assumes a machine that is not busy. */
function patient(client: KubeClient): KubeClient {
  const without = (options: RequestOptions = {}) => ({ ...options, timeout: 60 });
  return {
    ...client,
    get: (path, options) => client.get(path, without(options)),
    create: (path, body, options) => client.create(path, body, without(options)),
    replace: (path, body, options) => client.replace(path, body, without(options)),
  };
}

describe('leader election', function () {
  this.timeout(300_000);
  let api: ApiFixture;
  let now: number;
  const candidates: Candidate[] = [];

  beforeEach(async () => {
    api = await startApi();
    now = 0;
  });
  afterEach(async () => {
    await Promise.all(candidates.splice(0).map((one) => one.stop()));
    await api.stop();
  });

  const candidate = (identity: string, client: KubeClient = api.client, record?: LeaseRecord): Candidate => {
    const signal = new AbortController();
    const notified: boolean[] = [];
    const clock = { skip: 0 };
    let looks = 0;
    const election = createLeaderElection({
      client: patient({
        ...client,
        get: (path, options) => {
          looks++;
          return client.get(path, options);
        },
      }),
      namespace: 'default',
      name: 'leader',
      identity,
      duration: DURATION,
      interval: 0.05,
      ...(record && { record }),
      onChange: (leads) => void notified.push(leads),
      log: silent,
      now: () => now + clock.skip,
    });
    const running = election.run(signal.signal);
    const one: Candidate = {
      clock,
      notified,
      ended: running,
      run: election.run,
      isLeader: election.isLeader,
      get looks() {
        return looks;
      },
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
  /** Waits until each of them has read the Lease the given number of times more. */
  const looksOf = async (all: readonly Candidate[], more: number) => {
    const before = all.map(({ looks }) => looks);
    await eventually(() => all.every(({ looks }, i) => looks >= before[i]! + more), `${more} looks`);
  };
  const holder = async () =>
    ((await api.client.get(PATH)) as { spec: { holderIdentity: string; leaseTransitions: number } }).spec;

  it('elects one of several candidates, and all of them know it', async () => {
    const all = ['a', 'b', 'c'].map((identity) => candidate(identity));
    await eventually(() => all.every(({ settled }) => settled), 'all to be settled');
    const leads = (await holder()).holderIdentity;
    await eventually(() => all.every((one) => one.holder === leads), 'all to name the same holder');
    await eventually(() => all.some((one) => one.isLeader()), 'one to lead');
    await looksOf(all, 10);
    assert.equal(all.filter((one) => one.isLeader()).length, 1);
  });

  it('a holder past its deadline does not lead, even if its timers have not fired', async () => {
    const first = candidate('a');
    await eventually(() => first.isLeader(), 'the first to lead');
    first.clock.skip += DURATION;
    assert.ok(!first.isLeader());
  });

  for (const leaves of ['releases the Lease', 'ends without a word']) {
    it(`a new leader reads the record of the previous leader before it leads, if the first ${leaves}`, async () => {
      const log: string[] = [];
      let text = 'early';
      const recordOf = (identity: string): LeaseRecord => ({
        annotation: 'plumbline.dev/record',
        write: () => (identity === 'a' ? text : undefined),
        read: (found) => void log.push(`${identity} ${found}`),
      });
      const first = candidate('a', api.client, recordOf('a'));
      await eventually(() => first.isLeader(), 'the first to lead');
      text = 'late';
      await looksOf([first], 2);
      const second = candidate('b', api.client, recordOf('b'));
      await eventually(() => second.settled, 'the second to know');
      if (leaves === 'releases the Lease') {
        text = 'last';
        await first.release();
      } else {
        await first.stop();
        await looksOf([second], 2);
        now += DURATION;
      }
      await eventually(() => second.isLeader(), 'the second to lead');
      assert.deepEqual(log, ['a undefined', leaves === 'releases the Lease' ? 'b last' : 'b late']);
    });
  }

  it('a Lease that expires during its renewal is lost, and can be won again', async () => {
    let suspended = 0;
    const first: Candidate = candidate('a', {
      ...api.client,
      async get(path, options) {
        if (suspended++ === 2) first.clock.skip += DURATION;
        return api.client.get(path, options);
      },
    });
    await eventually(() => suspended > 4, 'the renewal to have been late');
    assert.deepEqual(first.notified, [true, false, true]);
    assert.ok(first.isLeader());
  });

  it('a vanished holder is replaced after its duration, not earlier', async () => {
    const first = candidate('a');
    await eventually(() => first.isLeader(), 'the first to lead');
    const second = candidate('b');
    await eventually(() => second.settled, 'the second to know');
    await first.stop();
    await looksOf([second], 2);
    now += DURATION - 0.01;
    await looksOf([second], 3);
    assert.ok(!second.isLeader());
    now += 0.01;
    await eventually(() => second.isLeader(), 'the second to lead');
    assert.deepEqual([(await holder()).holderIdentity, (await holder()).leaseTransitions], ['b', 2]);
  });

  it('a holder that releases the Lease is replaced at once', async () => {
    const first = candidate('a');
    await eventually(() => first.isLeader(), 'the first to lead');
    const second = candidate('b');
    await eventually(() => second.settled, 'the second to know');
    await first.stop();
    await first.release();
    assert.ok(!first.isLeader());
    await eventually(() => second.isLeader(), 'the second to lead');
    assert.deepEqual(first.notified, [true, false]);
  });

  it('a candidate that released the Lease no longer takes part, even while it runs', async () => {
    for (let i = 0; i < 4; i++) {
      const first = candidate(`a${i}`);
      await eventually(() => first.isLeader(), 'the first to lead');
      await looksOf([first], i);
      await first.release();
      await first.ended;
      assert.ok(!first.isLeader());
      assert.equal((await holder()).holderIdentity, '');
    }
  });

  it('a candidate that finds the Lease deleted waits for the duration, because its holder may have renewed it unseen', async () => {
    const first = candidate('a');
    await eventually(() => first.isLeader(), 'the first to lead');
    const second: Candidate = candidate('b', {
      ...api.client,
      async get(path, options) {
        // Nothing was seen for longer than the duration; meanwhile the holder renewed the Lease, and it was deleted.
        if (second.looks === 3) second.clock.skip += DURATION;
        if (second.looks === 3) await api.client.delete(PATH);
        return api.client.get(path, options);
      },
    });
    await eventually(() => {
      assert.ok(!(first.isLeader() && second.isLeader()));
      return second.looks >= 8;
    }, 'eight looks');
    assert.ok(first.isLeader());
    await first.stop();
    await api.client.delete(PATH);
    await looksOf([second], 2);
    now += DURATION;
    await eventually(() => second.isLeader(), 'the second to lead');
  });

  it('a candidate that was too slow to create the Lease waits for the duration, although it never reads it', async () => {
    let first: Candidate | undefined;
    const second: Candidate = candidate('b', {
      ...api.client,
      async create(path, body, options) {
        if (first === undefined) {
          first = candidate('a');
          await eventually(() => first?.isLeader() === true, 'the first to lead');
        }
        return api.client.create(path, body, options);
      },
      async get(path, options) {
        if (first !== undefined) await api.client.delete(PATH).catch(() => undefined);
        return api.client.get(path, options);
      },
    });
    await eventually(() => {
      assert.ok(!(first?.isLeader() && second.isLeader()));
      return second.looks >= 20;
    }, 'twenty looks');
    assert.ok(!second.isLeader());
  });

  it('a candidate without read permission does not touch the Lease', async () => {
    const first = candidate('a', {
      ...api.client,
      get: () => Promise.reject(new KubeError(403, 'Forbidden', 'no access to leases')),
    });
    await looksOf([first], 3);
    assert.deepEqual([first.isLeader(), first.settled], [false, false]);
    await assert.rejects(api.client.get(PATH), { status: 404 });
  });

  it('a released Lease has no holder, and a former leader does not name itself', async () => {
    const first = candidate('a');
    await eventually(() => first.isLeader(), 'the first to lead');
    assert.equal(first.holder, 'a');
    await first.release();
    assert.equal(first.holder, undefined);
    const second = candidate('b', { ...api.client, replace: () => Promise.reject(new Error('read-only')) });
    await eventually(() => second.settled, 'the second to have read the Lease');
    assert.equal(second.holder, undefined);
  });

  it('a deleted Lease is created again, without ever having two leaders', async () => {
    const all = ['a', 'b', 'c'].map((identity) => candidate(identity));
    await eventually(() => all.every(({ settled }) => settled), 'all to be settled');
    await eventually(() => all.some((one) => one.isLeader()), 'one to lead');
    for (let i = 0; i < 5; i++) {
      await api.client.delete(PATH).catch(() => undefined);
      const before = all.map(({ looks }) => looks);
      await eventually(() => {
        assert.ok(all.filter((one) => one.isLeader()).length <= 1);
        return all.every(({ looks }, i) => looks >= before[i]! + 3);
      }, 'three looks of each');
    }
    await eventually(() => all.some((one) => one.isLeader()), 'one to lead');
    assert.equal((await holder()).holderIdentity, ['a', 'b', 'c'][all.findIndex((one) => one.isLeader())]);
  });
});
