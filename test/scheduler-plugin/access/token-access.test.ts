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

describe('who may read an explanation, by token', () => {
  it('the API server says whose the token is, and whether that user may read just these pods', async () => {
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
    assert.equal(asked.length, 7, 'nothing more is asked about a token without a user');
  });

  it('an answer counts for ten seconds, for the same pods only', async () => {
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

  it('20 tokens at once and 5 a second beyond that are reviewed; others have to come again', async () => {
    const { access, asked, clock } = apiServer();
    const reviews = await Promise.all(Array.from({ length: 22 }, (_, i) => access.review(`t${i}`, POD)));
    assert.deepEqual([reviews.filter((one) => one === 'busy').length, asked.length], [2, 20]);
    clock.now += 0.2;
    assert.equal(await access.review('u', POD), 'unauthenticated');
    assert.equal(await access.review('v', POD), 'busy');
    clock.now += 1000;
    const later = await Promise.all(Array.from({ length: 30 }, (_, i) => access.review(`w${i}`, POD)));
    assert.equal(later.filter((one) => one === 'busy').length, 10, 'no more than 20 are saved up');
  });

  it('without an API server it says so, keeps no answer and logs it', async () => {
    const { access, state, logged } = apiServer();
    state.fails = true;
    assert.equal(await access.review('janes', POD), 'unavailable');
    assert.ok(logged.said('reviewing a token failed'));
    state.fails = false;
    assert.equal(await access.review('janes', POD), 'allowed');
  });
});
