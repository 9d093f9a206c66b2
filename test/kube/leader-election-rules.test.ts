import assert from 'node:assert/strict';
import { mock } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import type { KubeClient, RequestOptions } from '../../kube/client.ts';
import { KubeError } from '../../kube/errors.ts';
import {
  createLeaderElection,
  type LeaderElection,
  type LeaderElectionOptions,
  type LeaseRecord,
} from '../../kube/leader-election.ts';
import { recordingLogger } from '../support/logger.ts';

const COLLECTION = '/apis/coordination.k8s.io/v1/namespaces/plumbline/leases';
const PATH = `${COLLECTION}/extender`;
/** The wall clock of the test at virtual second 0. */
const EPOCH = Date.UTC(2026, 0, 1);
const timeAt = (second: number) => `${new Date(EPOCH + second * 1000).toISOString().slice(0, 23)}000Z`;

interface LeaseSpec {
  readonly holderIdentity?: string;
  readonly leaseDurationSeconds?: number;
  readonly acquireTime?: string;
  readonly renewTime?: string;
  readonly leaseTransitions?: number;
}
interface StoredLease {
  readonly metadata: { readonly resourceVersion?: string; readonly annotations?: Readonly<Record<string, string>> };
  readonly spec?: LeaseSpec;
}

/** Enough turns of the event loop for every promise that does not wait for a timer. */
async function settle(): Promise<void> {
  for (let i = 0; i < 5; i++) await setImmediate();
}

describe('the rules of leader election', () => {
  let second: number;
  let stored: StoredLease | undefined;
  let versions: number;
  let requests: { readonly method: string; readonly path: string; readonly timeout: number | undefined }[];
  /** Called before each request; it may fail the request or take time. */
  let interfere: (method: string) => unknown;
  let stops: AbortController[];

  beforeEach(() => {
    mock.timers.enable({ apis: ['setTimeout'] });
    second = 0;
    stored = undefined;
    versions = 0;
    requests = [];
    interfere = () => undefined;
    stops = [];
  });
  afterEach(async () => {
    for (const stop of stops) stop.abort();
    await settle();
    mock.timers.reset();
  });

  /** Moves the clock in steps of a quarter of a second. */
  const pass = async (seconds: number) => {
    for (let i = 0; i < seconds * 4; i++) {
      second += 0.25;
      mock.timers.tick(250);
      await settle();
    }
  };

  const store = (lease: object): void => {
    stored = {
      ...(lease as StoredLease),
      metadata: { ...(lease as StoredLease).metadata, resourceVersion: `${++versions}` },
    };
  };
  const hold = (spec?: LeaseSpec, annotations: Record<string, string> = {}) =>
    store({ metadata: { annotations }, ...(spec && { spec }) });

  const client = {
    async get(path: string, { timeout }: RequestOptions = {}) {
      requests.push({ method: 'get', path, timeout });
      await interfere('get');
      if (stored === undefined) throw new KubeError(404, 'NotFound', 'no lease');
      return structuredClone(stored);
    },
    async create(path: string, body: object, { timeout }: RequestOptions = {}) {
      requests.push({ method: 'create', path, timeout });
      await interfere('create');
      if (stored !== undefined) throw new KubeError(409, 'AlreadyExists', 'there is one');
      store(body);
    },
    async replace(path: string, body: object, { timeout }: RequestOptions = {}) {
      requests.push({ method: 'replace', path, timeout });
      await interfere('replace');
      const { resourceVersion } = (body as StoredLease).metadata;
      if (resourceVersion !== stored?.metadata.resourceVersion) throw new KubeError(409, 'Conflict', 'changed');
      store(body);
    },
  } as unknown as KubeClient;

  interface Candidate extends LeaderElection {
    readonly notified: boolean[];
    readonly lines: Record<string, unknown>[];
    readonly stop: AbortController;
    readonly running: Promise<void>;
  }

  const candidate = async (identity: string, more: Partial<LeaderElectionOptions> = {}): Promise<Candidate> => {
    const { log, lines } = recordingLogger();
    const notified: boolean[] = [];
    const stop = new AbortController();
    stops.push(stop);
    const election = createLeaderElection({
      client,
      namespace: 'plumbline',
      name: 'extender',
      identity,
      onChange: (leads) => void notified.push(leads),
      log,
      now: () => second,
      wallClock: () => EPOCH + second * 1000,
      ...more,
    });
    const running = election.run(stop.signal);
    await settle();
    // Getters stay getters.
    return Object.create(election, {
      notified: { value: notified },
      lines: { value: lines },
      stop: { value: stop },
      running: { value: running },
    }) as Candidate;
  };
  const count = (method: string) => requests.filter((one) => one.method === method).length;
  const warnings = ({ lines }: Candidate) => lines.filter(({ level }) => Number(level) >= 40).map(({ msg }) => msg);

  it('the leader renews a Lease of 8 s every 2 s, and each request has 2 s', async () => {
    const one = await candidate('a');
    assert.deepEqual(
      requests.map(({ method, path, timeout }) => [method, path, timeout]),
      [
        ['get', PATH, 2],
        ['create', COLLECTION, 2],
      ],
    );
    assert.equal(stored?.spec?.leaseDurationSeconds, 8);
    await pass(1.75);
    assert.equal(requests.length, 2);
    await pass(0.25);
    assert.deepEqual(
      requests.slice(2).map(({ method, timeout }) => [method, timeout]),
      [
        ['get', 2],
        ['replace', 2],
      ],
    );
    await pass(4);
    assert.deepEqual([count('replace'), one.notified, one.holder], [3, [true], 'a']);
  });

  it('a Lease has the time of its acquisition, the time of its renewal, and the number of its holders', async () => {
    const one = await candidate('a');
    await pass(4);
    assert.deepEqual(stored?.spec, {
      holderIdentity: 'a',
      leaseDurationSeconds: 8,
      acquireTime: timeAt(0),
      renewTime: timeAt(4),
      leaseTransitions: 1,
    });
    const two = await candidate('b');
    one.stop.abort();
    await pass(8);
    assert.ok(two.isLeader());
    await pass(2);
    assert.deepEqual(stored.spec, {
      holderIdentity: 'b',
      leaseDurationSeconds: 8,
      acquireTime: timeAt(12),
      renewTime: timeAt(14),
      leaseTransitions: 2,
    });
  });

  it('the leader adds a missing time of acquisition to its own Lease', async () => {
    hold({ holderIdentity: 'a', leaseDurationSeconds: 8, leaseTransitions: 7 });
    await candidate('a');
    assert.deepEqual([stored?.spec?.acquireTime, stored?.spec?.leaseTransitions], [timeAt(0), 7]);
  });

  it('the leader stops 6 s after the moment before its last successful renewal', async () => {
    interfere = (method) => {
      // The answer takes a second.
      if (method === 'create') second = 1;
    };
    const one = await candidate('a');
    interfere = () => {
      throw new KubeError(500, 'InternalError', 'no');
    };
    second = 5.99;
    assert.ok(one.isLeader());
    second = 6;
    assert.ok(!one.isLeader());
    await pass(2);
    assert.deepEqual(one.notified, [true, false]);
  });

  it('the leader reports that its time is over before it sends another request', async () => {
    const one = await candidate('a');
    interfere = () => new Promise(() => undefined);
    second += 6;
    await pass(2);
    assert.deepEqual([one.notified, count('get')], [[true, false], 2]);
  });

  it('a Lease that expires during its renewal is lost, and won again', async () => {
    const one = await candidate('a');
    interfere = (method) => {
      if (method === 'get') second += 6;
    };
    await pass(2);
    assert.deepEqual(one.notified, [true, false, true]);
  });

  it('the leader keeps the Lease after a failed renewal until its time is over', async () => {
    const one = await candidate('a');
    interfere = (method) => {
      if (method === 'replace') throw new KubeError(500, 'InternalError', 'no');
    };
    await pass(4);
    assert.ok(one.isLeader());
    assert.deepEqual(warnings(one), Array(2).fill('reading or renewing the leader lease failed'));
    await pass(2);
    assert.deepEqual(one.notified, [true, false]);
    assert.equal(one.holder, undefined, 'it no longer names itself');
    interfere = () => undefined;
    await pass(2);
    assert.deepEqual(one.notified, [true, false, true]);
  });

  it('the leader stops at once if another replica wrote the Lease, and waits for that one', async () => {
    const one = await candidate('a');
    interfere = (method) => {
      if (method === 'replace') hold({ holderIdentity: 'b', leaseDurationSeconds: 8 });
    };
    await pass(2);
    assert.deepEqual([one.isLeader(), one.notified, warnings(one)], [false, [true, false], []]);
    interfere = () => undefined;
    await pass(2);
    assert.equal(one.holder, 'b');
    await pass(6);
    assert.ok(!one.isLeader(), 'it read the Lease of the other 6 s ago');
    await pass(2);
    assert.deepEqual([one.isLeader(), one.notified], [true, [true, false, true]]);
  });

  it('the leader stops at once if it reads another holder', async () => {
    const one = await candidate('a');
    hold({ holderIdentity: 'b', leaseDurationSeconds: 8 });
    await pass(2);
    assert.deepEqual([one.isLeader(), one.holder, one.notified], [false, 'b', [true, false]]);
  });

  const DURATIONS: readonly (readonly [what: string, seconds: number | undefined, waits: number])[] = [
    ['as long as the Lease says', 3, 3],
    ['at least 1 s', 0, 1],
    ['at least 1 s, even if the duration is negative', -5, 1],
    ['at most 60 s', 3600, 60],
    ['its own duration, if the Lease has none', undefined, 8],
  ];
  for (const [what, leaseDurationSeconds, waits] of DURATIONS) {
    it(`a candidate waits for a silent holder: ${what}`, async () => {
      hold({ holderIdentity: 'b', ...(leaseDurationSeconds !== undefined && { leaseDurationSeconds }) });
      const one = await candidate('a', { interval: 0.25 });
      await pass(waits - 0.25);
      assert.ok(!one.isLeader());
      assert.equal(count('replace'), 0);
      await pass(0.25);
      assert.ok(one.isLeader());
    });
  }

  for (const [what, spec] of [
    ['without a spec', undefined],
    ['without a holder', { leaseDurationSeconds: 8 }],
    ['that its holder released', { holderIdentity: '', leaseDurationSeconds: 8 }],
    ['that the same replica held before', { holderIdentity: 'a', leaseDurationSeconds: 8 }],
  ] as const) {
    it(`a candidate takes a Lease ${what} at once`, async () => {
      hold(spec);
      const one = await candidate('a');
      assert.ok(one.isLeader());
      assert.equal(stored?.spec?.holderIdentity, 'a');
    });
  }

  it('a candidate waits for the holder of a Lease without a version', async () => {
    stored = { metadata: {}, spec: { holderIdentity: 'b', leaseDurationSeconds: 8 } };
    const one = await candidate('a');
    await pass(6);
    assert.ok(!one.isLeader());
  });

  it('a candidate measures a silence from the last change of the Lease', async () => {
    hold({ holderIdentity: 'b', leaseDurationSeconds: 8 });
    const one = await candidate('a');
    await pass(6);
    hold({ holderIdentity: 'b', leaseDurationSeconds: 8 });
    await pass(8);
    assert.ok(!one.isLeader(), 'it has read the change at 8 s');
    await pass(2);
    assert.ok(one.isLeader());
  });

  it('a candidate waits for the duration after it first found the Lease deleted', async () => {
    hold({ holderIdentity: 'b', leaseDurationSeconds: 4 });
    const one = await candidate('a');
    await pass(2);
    stored = undefined;
    await pass(4);
    assert.equal(count('create'), 0, 'it has known of the deletion for 2 s');
    assert.equal(one.holder, undefined);
    await pass(2);
    assert.ok(one.isLeader());
  });

  it('a candidate that was too slow to create the Lease waits for the duration', async () => {
    interfere = (method) => {
      if (method === 'create') hold({ holderIdentity: 'b', leaseDurationSeconds: 8 });
    };
    const one = await candidate('a');
    assert.deepEqual([count('create'), warnings(one)], [1, []]);
    // The Lease disappears unread.
    stored = undefined;
    interfere = () => undefined;
    await pass(6);
    assert.equal(count('create'), 1);
    await pass(2);
    assert.ok(one.isLeader());
  });

  it('a candidate is settled with the first answer, which also names the holder', async () => {
    let answer = (): void => undefined;
    interfere = () =>
      new Promise<void>((resolve) => {
        answer = resolve;
      });
    hold({ holderIdentity: 'b', leaseDurationSeconds: 8 });
    const one = await candidate('a');
    assert.deepEqual([one.settled, one.holder], [false, undefined]);
    answer();
    await settle();
    assert.deepEqual([one.settled, one.holder, one.notified], [true, 'b', []]);
  });

  it('a leader whose listener takes longer than the Lease reports the loss without waiting', async () => {
    const notified: boolean[] = [];
    const one = await candidate('a', {
      onChange: (leads) => {
        notified.push(leads);
        if (notified.length === 1) second += 8;
      },
    });
    mock.timers.tick(0);
    await settle();
    assert.deepEqual(notified.slice(0, 2), [true, false]);
    one.stop.abort();
  });

  it('a signal ends the participation at once, without a warning or a report', async () => {
    const one = await candidate('a');
    interfere = () =>
      new Promise((_, reject) => {
        one.stop.signal.addEventListener('abort', () => reject(one.stop.signal.reason));
      });
    await pass(2);
    second += 8;
    one.stop.abort();
    await one.running;
    assert.deepEqual([one.notified, warnings(one)], [[true], []]);
    const before = requests.length;
    await pass(10);
    assert.equal(requests.length, before);
  });

  it('a signal that has already aborted allows no request', async () => {
    const { log } = recordingLogger();
    const election = createLeaderElection({
      client,
      namespace: 'plumbline',
      name: 'extender',
      identity: 'a',
      onChange: () => assert.fail('it reported a change'),
      log,
      now: () => second,
    });
    await election.run(AbortSignal.abort());
    assert.deepEqual(requests, []);
  });

  describe('release', () => {
    it('leaves a Lease of 1 s without a holder, and reports the loss', async () => {
      const one = await candidate('a');
      await pass(2);
      await one.release();
      assert.deepEqual(stored?.spec, {
        holderIdentity: '',
        leaseDurationSeconds: 1,
        acquireTime: timeAt(0),
        renewTime: timeAt(2),
        leaseTransitions: 1,
      });
      assert.deepEqual([one.isLeader(), one.holder, one.notified], [false, undefined, [true, false]]);
      assert.deepEqual(requests.at(-2), { method: 'get', path: PATH, timeout: 2 });
      await pass(10);
      assert.equal(stored.spec.holderIdentity, '', 'it takes no further part');
    });

    it('waits for a renewal in progress, which would take the Lease back', async () => {
      const one = await candidate('a');
      let answer = (): void => undefined;
      interfere = (method) =>
        method === 'replace' &&
        new Promise<void>((resolve) => {
          answer = resolve;
        });
      await pass(2);
      const before = requests.length;
      const released = one.release();
      await settle();
      assert.equal(requests.length, before);
      interfere = () => undefined;
      assert.equal(stored?.spec?.holderIdentity, 'a');
      answer();
      await released;
      assert.equal(stored?.spec?.holderIdentity, '');
    });

    it('sends nothing if the replica does not lead', async () => {
      hold({ holderIdentity: 'b', leaseDurationSeconds: 8 });
      const one = await candidate('a');
      const before = requests.length;
      await one.release();
      assert.deepEqual([requests.length, stored?.spec?.holderIdentity, one.notified], [before, 'b', []]);
    });

    it('does not touch a Lease that another replica holds by now', async () => {
      const one = await candidate('a');
      hold({ holderIdentity: 'b', leaseDurationSeconds: 8 });
      await one.release();
      assert.deepEqual([stored?.spec?.holderIdentity, warnings(one)], ['b', []]);
    });

    it('logs a failure and does not reject', async () => {
      const one = await candidate('a');
      interfere = () => {
        throw new KubeError(500, 'InternalError', 'no');
      };
      await one.release();
      assert.deepEqual(warnings(one), ['releasing the lease failed; the next leader waits until it expires']);
      assert.deepEqual([one.isLeader(), one.notified], [false, [true, false]]);
    });
  });

  describe('the record of the leader', () => {
    const NOTE = 'plumbline.dev/note';
    const noteOf = (text: () => string | undefined) => {
      const read: (string | undefined)[] = [];
      const record: LeaseRecord = { annotation: NOTE, write: text, read: (found) => void read.push(found) };
      return { record, read };
    };

    it('is written with each renewal, but not with the first write, which keeps the record of the previous leader', async () => {
      hold({ holderIdentity: '' }, { [NOTE]: 'from before' });
      let text = 'first';
      const { record, read } = noteOf(() => text);
      await candidate('a', { record });
      assert.deepEqual([stored?.metadata.annotations, read], [{ [NOTE]: 'from before' }, ['from before']]);
      await pass(2);
      assert.deepEqual(stored?.metadata.annotations, { [NOTE]: 'first' });
      text = 'second';
      await pass(2);
      assert.deepEqual([stored.metadata.annotations, read], [{ [NOTE]: 'second' }, ['from before']]);
    });

    it('is absent if the leader has nothing to write', async () => {
      const { record, read } = noteOf(() => undefined);
      await candidate('a', { record });
      await pass(2);
      assert.deepEqual([stored?.metadata.annotations, read], [undefined, [undefined]]);
    });

    it('is written a last time by the release', async () => {
      let text = 'early';
      const { record } = noteOf(() => text);
      const one = await candidate('a', { record });
      text = 'last';
      await one.release();
      assert.deepEqual(stored?.metadata.annotations, { [NOTE]: 'last' });
    });

    it('is read before the report that this replica leads', async () => {
      const order: string[] = [];
      await candidate('a', {
        record: { annotation: NOTE, write: () => 'x', read: () => void order.push('record') },
        onChange: (leads) => void order.push(`leads: ${leads}`),
      });
      assert.deepEqual(order, ['record', 'leads: true']);
    });
  });
});
