import assert from 'node:assert/strict';
import { reviewToken } from '../../../scheduler-plugin/access/reviews.ts';

describe('the review of a token', () => {
  const review = async (status: object, allowed = true) => {
    const calls: { readonly path: string; readonly body: unknown; readonly timeout: unknown }[] = [];
    const create = async (path: string, body: unknown, options?: { timeout?: number }) => {
      calls.push({ path, body, timeout: options?.timeout });
      return calls.length === 1 ? { status } : { status: { allowed } };
    };
    const answer = await reviewToken({ create } as never, 'token', { verb: 'list' });
    return { answer, calls };
  };

  it('ends without an access review if the API server does not know the user', async () => {
    for (const status of [
      {},
      { authenticated: false, user: { username: 'jane' } },
      { user: { username: 'jane' } },
      { authenticated: null },
      { authenticated: true },
      { authenticated: true, user: null },
      { authenticated: true, user: {} },
      { authenticated: true, user: { username: '' } },
    ]) {
      const { answer, calls } = await review(status);
      assert.deepEqual([answer, calls.length], ['unauthenticated', 1], JSON.stringify(status));
    }
  });

  it('asks for the rights of a user without uid, groups and extra fields', async () => {
    for (const user of [{ username: 'jane' }, { username: 'jane', uid: null, groups: null, extra: null }]) {
      const { answer, calls } = await review({ authenticated: true, user });
      assert.equal(answer, 'allowed');
      assert.deepEqual(calls, [
        {
          path: '/apis/authentication.k8s.io/v1/tokenreviews',
          body: { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenReview', spec: { token: 'token' } },
          timeout: 3,
        },
        {
          path: '/apis/authorization.k8s.io/v1/subjectaccessreviews',
          body: {
            apiVersion: 'authorization.k8s.io/v1',
            kind: 'SubjectAccessReview',
            spec: {
              user: 'jane',
              uid: '',
              groups: [],
              extra: {},
              resourceAttributes: { version: 'v1', resource: 'pods', verb: 'list' },
            },
          },
          timeout: 3,
        },
      ]);
    }
  });

  it('is denied if the API server does not allow it', async () => {
    assert.equal((await review({ authenticated: true, user: { username: 'jane' } }, false)).answer, 'denied');
  });
});
