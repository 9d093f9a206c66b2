import assert from 'node:assert/strict';
import type { PodAttributes } from '../../../scheduler-plugin/access/reviews.ts';
import { createTokenAccess } from '../../../scheduler-plugin/access/token-access.ts';
import { recordingLogger } from '../../support/logger.ts';

const POD: PodAttributes = { verb: 'get', namespace: 'team-a', name: 'vm' };

/** An API server that knows one token, whose user may read pods of one namespace. */
function apiServer() {
  const asked: { readonly path: string; readonly spec: Record<string, unknown> }[] = [];
  const state = { fails: false, allowed: true };
  const create = async (path: string, body: unknown) => {
    const { spec } = body as { spec: Record<string, unknown> };
    asked.push({ path, spec });
    if (state.fails) throw new Error('connection refused');
    if (path.includes('tokenreviews')) {
      const user = { username: 'jane', uid: '7', groups: ['dev'], extra: { scopes: ['all'] } };
      return { status: spec['token'] === 'janes' ? { authenticated: true, user } : { authenticated: false } };
    }
    const { namespace } = spec['resourceAttributes'] as PodAttributes;
    return { status: { allowed: state.allowed && namespace === 'team-a' } };
  };
  const clock = { now: 50 };
  const logged = recordingLogger();
  const access = createTokenAccess({ client: { create } as never, log: logged.log, now: () => clock.now });
  return { access, asked, state, clock, logged };
}

describe('the review of tokens for explanations', () => {
  it('asks the API server for the user of the token, and whether that user may read these pods', async () => {
    const { access, asked } = apiServer();
    assert.equal(await access.review('janes', POD), 'allowed');
    assert.equal(await access.review('janes', { ...POD, namespace: 'team-b' }), 'denied');
    assert.equal(await access.review('janes', { verb: 'list' }), 'denied');
    assert.equal(await access.review('forged', POD), 'unauthenticated');
    assert.deepEqual(asked[1]?.spec, {
      user: 'jane',
      uid: '7',
      groups: ['dev'],
      extra: { scopes: ['all'] },
      resourceAttributes: { version: 'v1', resource: 'pods', ...POD },
    });
    assert.equal(asked.length, 7, 'a token without a user gets no access review');
  });

  it('keeps an answer for ten seconds, only for the same pods', async () => {
    const { access, asked, state, clock } = apiServer();
    await access.review('janes', POD);
    state.allowed = false;
    clock.now += 9.9;
    assert.equal(await access.review('janes', POD), 'allowed');
    assert.equal(asked.length, 2);
    assert.equal(await access.review('janes', { ...POD, name: 'other' }), 'denied');
    clock.now += 0.1;
    assert.equal(await access.review('janes', POD), 'denied');
  });

  it('takes 20 tokens at once, then 5 per second; other clients must retry', async () => {
    const { access, asked, clock } = apiServer();
    const reviews = await Promise.all(Array.from({ length: 22 }, (_, i) => access.review(`t${i}`, POD)));
    assert.deepEqual([reviews.filter((one) => one === 'busy').length, asked.length], [2, 20]);
    clock.now += 0.2;
    assert.equal(await access.review('u', POD), 'unauthenticated');
    assert.equal(await access.review('v', POD), 'busy');
    clock.now += 1000;
    const later = await Promise.all(Array.from({ length: 30 }, (_, i) => access.review(`w${i}`, POD)));
    assert.equal(later.filter((one) => one === 'busy').length, 10, 'a burst is limited to 20');
  });

  it('is unavailable without an API server; the failure is logged and not kept', async () => {
    const { access, state, logged } = apiServer();
    state.fails = true;
    assert.equal(await access.review('janes', POD), 'unavailable');
    assert.ok(logged.said('reviewing a token failed'));
    state.fails = false;
    assert.equal(await access.review('janes', POD), 'allowed');
  });
});
