import assert from 'node:assert/strict';
import { chmodSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { mock } from 'node:test';
import { type KubeClient, KubeError } from '../../../kube/client.ts';
import { readTokenClaims, TokenRenewal } from '../../../node-agent/dpu-lease/token-renewal.ts';
import { recordingLogger, tempDirectories, testMetrics } from '../support.ts';

const DAY = 86_400;
const HOUR = 3600;
const START = 1_800_000_000;

const encoded = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
let serial = 0;
function tokenOf(claims: object): string {
  return `${encoded({ alg: 'RS256' })}.${encoded(claims)}.signature-${++serial}`;
}
const SUBJECT = 'system:serviceaccount:plumbline-dpu:worker-1';

describe('claims of a token', () => {
  it('give its account, and when it was issued and expires', () => {
    const claims = readTokenClaims(tokenOf({ sub: SUBJECT, iat: 10, exp: 20, aud: ['x'] }));
    assert.deepEqual(claims, { namespace: 'plumbline-dpu', account: 'worker-1', issued: 10, expires: 20 });
  });

  const others: [string, string][] = [
    ['nothing', ''],
    ['a word', 'secret-word'],
    ['text that is not JSON', 'a.c2VjcmV0.c'],
    ['a user’s token', tokenOf({ sub: 'secret-user', iat: 10, exp: 20 })],
    ['a token that does not expire', tokenOf({ sub: SUBJECT, iat: 10 })],
    ['a name with a path', tokenOf({ sub: 'system:serviceaccount:a/../b:c', iat: 10, exp: 20 })],
  ];
  for (const [what, token] of others) {
    it(`${what}: refused, and not repeated`, () => {
      assert.throws(
        () => readTokenClaims(token),
        ({ message }: Error) => /not a service account token with an expiry/.test(message) && !/secret/.test(message),
      );
    });
  }
});

describe('the renewal of a DPU’s token', () => {
  const temp = tempDirectories();

  /** A DPU on which time passes while the duty waits. `granted`: validity of the API server's tokens, in seconds. */
  function dpu({ granted = DAY, skew = 0 } = {}) {
    const directory = temp();
    const file = join(directory, 'token');
    const requested: { path: string; body: object }[] = [];
    const stop = new AbortController();
    const logged = recordingLogger();
    const metrics = testMetrics();
    let seconds = 0;
    let failure: Error | undefined;
    const waits: number[] = [];
    const client = {
      async create(path: string, body: object) {
        requested.push({ path, body });
        if (failure) throw failure;
        const issued = START + seconds;
        return { status: { token: tokenOf({ sub: SUBJECT, iat: issued, exp: issued + granted }) } };
      },
    } as unknown as KubeClient;
    let until = 0;
    const renewal = new TokenRenewal({
      client,
      tokenFile: file,
      log: logged.log,
      metrics,
      wallClock: () => (START + seconds + skew) * 1000,
      nowSeconds: () => 1000 + seconds,
    });
    const skip = (callback: () => void, milliseconds: number) => {
      waits.push(milliseconds / 1000);
      seconds += milliseconds / 1000;
      if (seconds >= until) stop.abort();
      return setImmediate(callback);
    };
    return {
      file,
      directory,
      requested,
      waits,
      logged,
      put: (lifetime: number, age = 0) => {
        const issued = START + seconds - age;
        writeFileSync(file, tokenOf({ sub: SUBJECT, iat: issued, exp: issued + lifetime }));
      },
      fail: (error: Error | undefined) => {
        failure = error;
      },
      left: async () => (await metrics.dpuTokenExpiry.get()).values.map(({ value }) => value),
      failures: async () => (await metrics.dpuTokenFailures.get()).values[0]?.value,
      /** Runs the duty for this time. */
      async pass(duration: number) {
        until = seconds + duration;
        const timers = mock.method(globalThis, 'setTimeout', skip);
        await renewal.run(stop.signal);
        timers.mock.restore();
      },
    };
  }

  it('requests a day for its own account, and replaces the file in one step with access only for its owner', async () => {
    const { file, directory, put, pass, requested, left, logged } = dpu();
    put(HOUR);
    chmodSync(file, 0o644);
    const before = readFileSync(file, 'utf8');
    await pass(1);
    const path = '/api/v1/namespaces/plumbline-dpu/serviceaccounts/worker-1/token';
    const kind = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest' };
    assert.deepEqual(requested, [{ path, body: { ...kind, spec: { expirationSeconds: 86_400 } } }]);
    const { issued, expires } = readTokenClaims(readFileSync(file, 'utf8').trim());
    assert.notEqual(readFileSync(file, 'utf8'), before);
    assert.equal(expires - issued, DAY);
    assert.equal(statSync(file).mode & 0o777, 0o600);
    assert.deepEqual(readdirSync(directory), ['token']);
    assert.deepEqual(await left(), [DAY]);
    assert.ok(!JSON.stringify(logged.lines).includes('signature'), 'no token is logged');
  });

  const cases: [string, lifetime: number, age: number, granted: number, duration: number, renewals: number][] = [
    ['a one-day token past half of its life', DAY, DAY / 2 + 1, DAY, 1, 1],
    ['a new one-day token, up to half a day', DAY, 0, DAY, DAY / 2 - 120, 0],
    ['a new one-day token, over half a day', DAY, 0, DAY, DAY / 2 + 120, 1],
    ['a token for ten minutes', 600, 0, DAY, 1, 1],
    ['an expired token', HOUR, 2 * HOUR, DAY, 1, 1],
    ['a token for a year, over one day', 365 * DAY, 0, DAY, DAY, 0],
    ['one-day tokens over a week', HOUR, 0, DAY, 7 * DAY, 14],
    ['an API server that grants at most one hour, over 12 hours', HOUR, 0, HOUR, 12 * HOUR, 24],
  ];
  for (const [what, lifetime, age, granted, duration, renewals] of cases) {
    it(`${what}: renewed ${renewals} times`, async () => {
      const { put, pass, requested, waits } = dpu({ granted });
      put(lifetime, age);
      await pass(duration);
      assert.ok(Math.abs(requested.length - renewals) <= (renewals > 2 ? 1 : 0), `${requested.length} times`);
      for (const seconds of waits) assert.ok(seconds >= 1 && seconds <= 60, `${seconds} s`);
    });
  }

  for (const skew of [-30 * DAY, 30 * DAY]) {
    it(`neither expires nor is requested in a loop if the clock is ${skew} s off`, async () => {
      const { put, pass, requested } = dpu({ skew });
      put(DAY);
      await pass(DAY);
      assert.ok(requested.length >= 1 && requested.length <= 3, `${requested.length} times`);
    });
  }

  it('logs a failed renewal once, counts it, retries with backoff, and recovers', async () => {
    const it = dpu();
    it.put(HOUR);
    const before = readFileSync(it.file, 'utf8');
    it.fail(new KubeError(403, 'Forbidden', 'serviceaccounts "worker-1" is forbidden'));
    await it.pass(HOUR);
    assert.equal(readFileSync(it.file, 'utf8'), before, 'the token is kept');
    assert.equal(it.logged.lines.filter(({ level }) => level === 40).length, 1);
    assert.ok((await it.failures())! >= 10);
    assert.ok(it.requested.length <= 40, `${it.requested.length} tries`);
    assert.ok(it.waits[0]! <= 5 && it.waits.every((seconds) => seconds <= 300));
    const [left = 0] = await it.left();
    assert.ok(left <= 300, `the metric goes down: ${left}`);
  });

  it('waits for a missing file or for a file that is not a token', async () => {
    const it = dpu();
    await it.pass(100);
    assert.deepEqual(it.requested, []);
    assert.match(JSON.stringify(it.logged.lines), /ENOENT/);
    const other = dpu();
    writeFileSync(other.file, 'secret-word\n');
    await other.pass(100);
    assert.deepEqual(other.requested, []);
    assert.doesNotMatch(JSON.stringify(other.logged.lines), /secret-word/);
    assert.equal(readFileSync(other.file, 'utf8'), 'secret-word\n');
  });
});
