import assert from 'node:assert/strict';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { mock } from 'node:test';
import { createKubeClient, type KubeClient, KubeError } from '../../kube/client.ts';
import { eventually } from '../support/eventually.ts';

const isKubeError = (status: number, reason: string) => (error: unknown) =>
  error instanceof KubeError && error.status === status && error.reason === reason;

describe('a client of a plain HTTP server, such as kubectl proxy', () => {
  let server: Server;
  let client: KubeClient;
  let requests: IncomingMessage[];
  let answer: (request: IncomingMessage, response: ServerResponse) => void;

  const open = (connections?: number) => {
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    return createKubeClient(
      { server: url, requestOptions: () => ({ headers: { 'x-from': 'me' } }) },
      'test/1',
      connections,
    );
  };
  const json = (status: number, body: object) => (_request: IncomingMessage, response: ServerResponse) =>
    void response.writeHead(status).end(JSON.stringify(body));

  beforeEach(async () => {
    requests = [];
    answer = json(200, { kind: 'Thing' });
    server = createServer((request, response) => {
      requests.push(request);
      answer(request, response);
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    client = open();
  });
  afterEach(async () => {
    await client.close();
    server.close().closeAllConnections();
  });

  it('sends the length of a body in bytes', async () => {
    let body = '';
    answer = (request, response) => {
      request.on('data', (chunk) => {
        body += chunk;
      });
      request.on('end', () => response.end());
    };
    assert.equal(await client.create('/a', { text: 'ä€' }), undefined, 'an empty answer is no object');
    assert.deepEqual([body, requests[0]?.headers['content-length']], ['{"text":"ä€"}', '16']);
  });

  it('takes status 400 as an error, for a call and for a watch', async () => {
    answer = json(400, { reason: 'BadRequest', message: 'text' });
    await assert.rejects(client.get('/a'), isKubeError(400, 'BadRequest'));
    await assert.rejects(client.watch('/a', {}), { status: 400, message: 'WATCH /a: 400 BadRequest: text' });
  });

  it('ends a call after 10 s, or after the given time', async () => {
    mock.timers.enable({ apis: ['setTimeout'] });
    try {
      answer = () => undefined;
      for (const [options, seconds] of [
        [{}, 10],
        [{ timeout: 3 }, 3],
      ] as const) {
        const before = requests.length;
        const call = client.get('/a', options);
        while (requests.length === before) await new Promise((resolve) => setImmediate(resolve));
        mock.timers.tick(seconds * 1000 - 1);
        assert.equal(requests.at(-1)?.socket.closed, false);
        mock.timers.tick(1);
        await assert.rejects(call, /GET \/a: .*timeout/);
      }
    } finally {
      mock.timers.reset();
    }
  });

  it('uses no idle connection after a request that was not answered in time', async () => {
    await Promise.all([client.get('/a'), client.get('/b')]);
    const idle = new Set(requests.map(({ socket }) => socket.remotePort));
    assert.equal(idle.size, 2);
    answer = () => undefined;
    await assert.rejects(client.get('/a', { timeout: 0.1 }), isKubeError(0, 'Unreachable'));
    answer = json(200, { kind: 'Thing' });
    await Promise.all([client.get('/c'), client.get('/d')]);
    const used = requests.slice(-2).map(({ socket }) => socket.remotePort);
    assert.ok(
      used.every((port) => !idle.has(port)),
      `${[...idle]} and ${used}`,
    );
  });

  const firsts: [string, typeof answer][] = [
    ['before its headers', () => undefined],
    ['after its headers', (_, response) => void response.writeHead(200).flushHeaders()],
  ];
  for (const [what, first] of firsts) {
    it(`uses no idle connection after a watch that was ended ${what}`, async () => {
      const stop = new AbortController();
      answer = first;
      const watched = (async () => {
        for await (const _ of await client.watch('/a', { signal: stop.signal }));
      })();
      watched.catch(() => undefined);
      await eventually(() => requests.length === 1, 'the watch');
      answer = json(200, {});
      await client.get('/b');
      stop.abort();
      await assert.rejects(watched);
      await client.get('/c');
      const [, before, after] = requests.map(({ socket }) => socket.remotePort);
      assert.notEqual(after, before);
    });
  }

  it('throws the caller’s own abort, for a call and for a watch', async () => {
    answer = () => undefined;
    for (const ask of [
      (signal: AbortSignal) => client.get('/a', { signal }),
      (signal: AbortSignal) => client.watch('/a', { signal }),
    ]) {
      const stop = new AbortController();
      const before = requests.length;
      const request = ask(stop.signal);
      eventually(() => requests.length > before, 'the request').then(
        () => stop.abort(),
        () => undefined,
      );
      await assert.rejects(request, { name: 'AbortError' });
    }
  });

  it('does not repeat a request on a kept connection that the caller aborted', async () => {
    await client.get('/a');
    answer = () => undefined;
    const stop = new AbortController();
    const request = client.get('/a', { signal: stop.signal });
    await Promise.all([
      assert.rejects(request, { name: 'AbortError' }),
      eventually(() => requests.length === 2, 'the request').then(() => stop.abort()),
    ]);
    answer = json(200, {});
    await client.get('/b');
    assert.deepEqual(
      requests.map(({ url }) => url),
      ['/a', '/a', '/b'],
    );
  });

  it('repeats a request once if a kept connection breaks', async () => {
    await client.get('/a');
    answer = (request) => request.socket.destroy();
    await assert.rejects(client.get('/a'), isKubeError(0, 'Unreachable'));
    assert.equal(requests.length, 3);
    await assert.rejects(client.get('/a'), isKubeError(0, 'Unreachable'));
    assert.equal(requests.length, 4, 'a new connection that breaks is no stale one');
  });

  it('reports the error of a repeated read, which changes nothing', async () => {
    await client.get('/a');
    answer = (request) => {
      answer = json(404, { reason: 'NotFound' });
      request.socket.destroy();
    };
    await assert.rejects(client.get('/a'), isKubeError(404, 'NotFound'));
  });

  it('accepts the result of a repeated write', async () => {
    await client.get('/a');
    answer = (request) => {
      answer = json(200, { kind: 'Written' });
      request.socket.destroy();
    };
    assert.deepEqual(await client.replace('/a', {}), { kind: 'Written' });
  });

  it('opens no more connections than its limit', async () => {
    const narrow = open(2);
    const waiting: ServerResponse[] = [];
    answer = (_request, response) => void waiting.push(response);
    const calls = [1, 2, 3].map((i) => narrow.get(`/${i}`));
    await eventually(() => requests.length === 2, 'two requests');
    answer = json(200, {});
    for (const response of waiting) response.end('{}');
    await Promise.all(calls);
    assert.equal(requests.length, 3);
    assert.ok(new Set(requests.map(({ socket }) => socket.remotePort)).size <= 2);
    await narrow.close();
  });
});
