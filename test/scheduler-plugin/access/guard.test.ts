import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import express from 'express';
import { createGuard } from '../../../scheduler-plugin/access/guard.ts';
import type { PodAttributes, Review } from '../../../scheduler-plugin/access/reviews.ts';

type Verdict = Review | 'busy' | 'unavailable';

describe('the guard of the extender', () => {
  const asked: { readonly token: string; readonly attributes: PodAttributes }[] = [];
  let answer: Verdict = 'allowed';
  let isKnown = false;
  let server: Server;
  before(async () => {
    const review = async (token: string, attributes: PodAttributes) => {
      asked.push({ token, attributes });
      return answer;
    };
    const app = express().set('query parser', 'simple');
    app.use(createGuard({ isKnown: () => isKnown, access: { review } }));
    app.use((_, response) => void response.send('passed'));
    server = createServer(app).listen(0, '127.0.0.1');
    await once(server, 'listening');
  });
  after(() => server.close());
  beforeEach(() => {
    asked.length = 0;
    isKnown = false;
    answer = 'allowed';
  });

  const ask = async (path: string, { token, method = 'GET' }: { token?: string; method?: string } = {}) => {
    const headers = token === undefined ? {} : { authorization: token };
    const response = await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}${path}`, {
      method,
      headers,
    });
    return [response.status, await response.text(), response.headers.get('www-authenticate')] as const;
  };
  const EXPLAIN = '/explain?pod=team-a/vm';
  const bearer = 'Bearer abc.def';

  it('admits a client with a certificate to all paths without a review', async () => {
    isKnown = true;
    for (const path of ['/filter', EXPLAIN]) assert.deepEqual(await ask(path), [200, 'passed', null]);
    assert.deepEqual(asked, []);
  });

  it('admits a token only to /explain', async () => {
    const [status, text, scheme] = await ask('/filter', { token: bearer, method: 'POST' });
    assert.deepEqual([status, scheme], [401, 'Bearer']);
    assert.equal(text, 'plumbline: a client certificate is required (--client-ca-file, --client-names)\n');
    assert.deepEqual(asked, []);
  });

  for (const token of [undefined, 'abc', 'Basic abc', 'Bearer ', 'Bearer a b', `Bearer ${'x'.repeat(8193)}`]) {
    it(`does not ask the API server about ${token === undefined ? 'a missing token' : `"${token.slice(0, 12)}"`}`, async () => {
      const [status, text] = await ask(EXPLAIN, token === undefined ? {} : { token });
      assert.deepEqual([status, text], [401, 'plumbline: a client certificate or a bearer token is required\n']);
      assert.deepEqual(asked, []);
    });
  }

  const QUESTIONS: readonly [string, string, PodAttributes][] = [
    ['GET', '/explain?pod=team-a/vm', { verb: 'get', namespace: 'team-a', name: 'vm' }],
    ['GET', '/explain?pod=team-a/vm.with.dots', { verb: 'get', namespace: 'team-a', name: 'vm.with.dots' }],
    ['GET', '/explain', { verb: 'list' }],
    ['GET', '/explain?pod=team-a', { verb: 'list' }],
    ['GET', '/explain?pod=team-a/vm/log', { verb: 'list' }],
    ['GET', '/explain?pod=a/b&pod=team-a/vm', { verb: 'list' }],
    ['GET', '/explain?pod=TEAM/vm', { verb: 'list' }],
    ['POST', '/explain?pod=team-a/vm', { verb: 'list' }],
  ];
  for (const [method, path, attributes] of QUESTIONS) {
    const { verb, ...pod } = attributes;
    it(`${method} ${path} needs ${verb} on ${'name' in pod ? 'the pod' : 'all pods'}`, async () => {
      assert.deepEqual(await ask(path, { token: bearer, method }), [200, 'passed', null]);
      assert.deepEqual(asked, [{ token: 'abc.def', attributes }]);
    });
  }

  const REFUSALS: readonly [Verdict, string, number, RegExp][] = [
    ['denied', EXPLAIN, 403, /may not read the pod/],
    ['denied', '/explain', 403, /may not list the pods of all namespaces/],
    ['unauthenticated', EXPLAIN, 401, /does not accept the token/],
    ['busy', EXPLAIN, 429, /too many tokens .* try again/],
    ['unavailable', EXPLAIN, 503, /did not review the token; try again/],
  ];
  for (const [review, path, status, text] of REFUSALS) {
    it(`${review} for ${path}: ${status}`, async () => {
      answer = review;
      const [given, body, scheme] = await ask(path, { token: bearer });
      assert.deepEqual([given, scheme], [status, status === 401 ? 'Bearer' : null]);
      assert.match(body, text);
    });
  }
});
