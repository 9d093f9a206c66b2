import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { mock } from 'node:test';
import { createKubeClient } from '../../kube/api-transport.ts';
import type { KubeClient } from '../../kube/client.ts';
import { eventually } from '../support/eventually.ts';

describe('a client of the API server', () => {
  let server: Server;
  let client: KubeClient;
  let requests: IncomingMessage[];
  let answer: (request: IncomingMessage, response: ServerResponse) => void;

  const open = (connections?: number) => {
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const access = { server: url, requestOptions: () => ({ headers: { 'x-from': 'me' } }) };
    return createKubeClient(access, 'test/1', connections);
  };
  /** The port of the connection of each request. */
  const ports = () => requests.map(({ socket }) => socket.remotePort ?? 0);
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

  it('has one kept connection, the credentials, a query and a body, whose length is in bytes', async () => {
    const bodies: string[] = [];
    answer = async (request, response) => {
      bodies.push(await text(request));
      response.end();
    };
    const query = { force: true, labelSelector: 'a=b,c', none: undefined };
    assert.equal(await client.create('/a', { text: 'ä€' }), undefined, 'an empty answer is no object');
    await client.patch('/b', 'application/apply-patch+yaml', { x: 1 }, { query });
    await client.replace('/c', {});
    await client.delete('/d');
    for await (const _ of await client.watch('/e', {}));
    const sent = requests.map(({ method, url, headers }, i) =>
      [method, url, headers['content-type'], bodies[i]].join(' '),
    );
    assert.deepEqual(sent, [
      'POST /a application/json {"text":"ä€"}',
      'PATCH /b?force=true&labelSelector=a%3Db%2Cc application/apply-patch+yaml {"x":1}',
      'PUT /c application/json {}',
      'DELETE /d  ',
      'GET /e?watch=true  ',
    ]);
    for (const { headers } of requests) {
      assert.deepEqual([headers.accept, headers['x-from']], ['application/json, */*', 'me'], 'as client-go');
    }
    assert.equal(requests[0]?.headers['content-length'], '16');
    assert.equal(new Set(ports()).size, 1);
  });

  it('knows how far the clock of the server is ahead, from the last response', async () => {
    assert.equal(client.clockOffset?.(), 0);
    for (const seconds of [300, -300, 0]) {
      answer = (_, response) => {
        response.setHeader('date', new Date(Date.now() + seconds * 1000).toUTCString()).end('{}');
      };
      await client.get('/a');
      assert.ok(Math.abs((client.clockOffset?.() ?? 0) / 1000 - seconds) < 30);
    }
  });

  it('keeps its connection when the response comes before the last byte of the request has left', async () => {
    answer = (request, response) => {
      response.end('{}');
      request.resume();
    };
    // A slow machine needs longer than the client waits for its connection.
    mock.timers.enable({ apis: ['setTimeout'] });
    try {
      for (let i = 0; i < 5; i++) await client.create('/b', { text: 'x'.repeat(4e6) });
    } finally {
      mock.timers.reset();
    }
    assert.equal(new Set(ports()).size, 1);
  });

  it('uses keep-alive probes, so that a watch ends when its server disappears', async () => {
    answer = () => undefined;
    const stop = new AbortController();
    const watching = client.watch('/a', { signal: stop.signal });
    await eventually(() => requests.length > 0, 'the server has the request');
    // proc_net_tcp(5): the timer `02:<ticks>` is that of keep-alive probes if all data is acknowledged.
    const port = requests[0]?.socket.remotePort ?? assert.fail();
    const local = `0100007F:${port.toString(16).toUpperCase().padStart(4, '0')}`;
    const timer = () => {
      const lines = readFileSync('/proc/net/tcp', 'utf8').split('\n');
      const fields = lines.map((line) => line.trim().split(/\s+/)).find((one) => one[1] === local);
      const [active, ticks = ''] = fields?.[5]?.split(':') ?? [];
      return active === '02' ? Number.parseInt(ticks, 16) / 100 : 0;
    };
    await eventually(() => timer() > 5, 'its timer runs');
    assert.ok(timer() <= 30, `${timer()} seconds`);
    stop.abort();
    await assert.rejects(watching, { name: 'AbortError' });
  });

  it('takes status 400 as an error, for a call and for a watch', async () => {
    answer = json(400, { reason: 'BadRequest', message: 'text' });
    await assert.rejects(client.get('/a'), { name: 'KubeError', status: 400, reason: 'BadRequest' });
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
    const idle = new Set(ports());
    assert.equal(idle.size, 2);
    answer = () => undefined;
    await assert.rejects(client.get('/a', { timeout: 0.1 }), { name: 'KubeError', status: 0, reason: 'Unreachable' });
    answer = json(200, { kind: 'Thing' });
    await Promise.all([client.get('/c'), client.get('/d')]);
    const reused = ports().filter((port, index) => index > 2 && idle.has(port));
    assert.deepEqual(reused, [], `${ports()}`);
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
      const [, before, after] = ports();
      assert.notEqual(after, before);
    });
  }

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
    assert.equal(requests.map(({ url }) => url).join(), '/a,/a,/b');
  });

  it('repeats a request once if a kept connection breaks', async () => {
    await client.get('/a');
    answer = (request) => request.socket.destroy();
    await assert.rejects(client.get('/a'), { name: 'KubeError', status: 0, reason: 'Unreachable' });
    assert.equal(requests.length, 3);
    await assert.rejects(client.get('/a'), { name: 'KubeError', status: 0, reason: 'Unreachable' });
    assert.equal(requests.length, 4, 'a new connection that breaks is no stale one');
  });

  const repeated: [string, 'get' | 'replace', typeof answer, object][] = [
    ['error of a read, which changes nothing', 'get', json(404, { reason: 'NotFound' }), { reason: 'NotFound' }],
    ['result of a write', 'replace', json(200, { kind: 'Written' }), {}],
    [
      'loss of the answer to a write, not the conflict that it may have caused',
      'replace',
      json(409, { reason: 'Conflict' }),
      { reason: 'Unreachable' },
    ],
  ];
  for (const [what, verb, second, outcome] of repeated) {
    it(`reports of a repeated request the ${what}`, async () => {
      await client.get('/a');
      answer = (request) => {
        answer = second;
        request.socket.destroy();
      };
      const call = client[verb]('/a', {});
      if ('reason' in outcome) await assert.rejects(call, outcome);
      else assert.deepEqual(await call, { kind: 'Written' });
      assert.equal(requests.length, 3);
    });
  }

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
    assert.ok(new Set(ports()).size <= 2);
    await narrow.close();
  });
});
