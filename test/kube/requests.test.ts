import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { createKubeClient, KubeError } from '../../kube/client.ts';
import { kubeconfigAccess } from '../../kube/kubeconfig.ts';
import { createCertificateAuthority } from '../../sandbox/certificates.ts';
import { eventually } from '../support/eventually.ts';
import { tempDirectories } from '../support/files.ts';
import { kubeconfigText } from './api-fixture.ts';

const authority = createCertificateAuthority('api');
const serving = authority.issue(['localhost', '127.0.0.1']);

describe('requests to the API server', () => {
  const temp = tempDirectories();
  let server: Server;
  let url: string;
  let connections: number;
  let requests: {
    method: string;
    url: string;
    authorization: string | undefined;
    type: string | undefined;
    accept: string | undefined;
    /** The client's. */
    port: number | undefined;
    body: string;
  }[];
  let answer: { status: number; body: string; date?: string };
  let delay: number;
  /** Whether the server responds before it reads the request. */
  let early: boolean;
  /** The number of requests whose connection breaks before the answer. */
  let lost: number;

  before(async () => {
    server = createServer({ cert: serving.cert, key: serving.key }, async (request, response) => {
      const { method = '', url: path = '', headers } = request;
      if (early) {
        response.writeHead(answer.status).end(answer.body);
        request.resume();
        return;
      }
      requests.push({
        method,
        url: path,
        authorization: headers.authorization,
        type: headers['content-type'],
        accept: headers.accept,
        port: request.socket.remotePort,
        body: await text(request),
      });
      if (lost-- > 0) request.socket.destroy();
      else {
        if (answer.date !== undefined) response.setHeader('date', answer.date);
        setTimeout(() => response.writeHead(answer.status).end(answer.body), delay).unref();
      }
    });
    server.on('secureConnection', () => connections++);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    url = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  after(() => server.close().closeAllConnections());
  beforeEach(() => {
    connections = 0;
    requests = [];
    answer = { status: 200, body: '{"kind":"Thing"}' };
    delay = 0;
    lost = 0;
    early = false;
  });
  const client = () => {
    const file = join(temp(), 'kubeconfig');
    const cluster = { server: url, 'certificate-authority-data': Buffer.from(authority.cert).toString('base64') };
    writeFileSync(file, kubeconfigText(cluster, { token: 't' }));
    return createKubeClient(kubeconfigAccess(file), 'test/1');
  };

  it('have one kept connection, a token, a query and a body', async () => {
    const api = client();
    assert.deepEqual(await api.get('/a', { query: { limit: 5, none: undefined } }), { kind: 'Thing' });
    await api.patch('/b', 'application/apply-patch+yaml', { x: 1 }, { query: { force: true } });
    await api.create('/c', { y: 2 });
    await api.delete('/c/d');
    assert.deepEqual(
      requests.map((one) => [one.method, one.url, one.authorization, one.type, one.body]),
      [
        ['GET', '/a?limit=5', 'Bearer t', undefined, ''],
        ['PATCH', '/b?force=true', 'Bearer t', 'application/apply-patch+yaml', '{"x":1}'],
        ['POST', '/c', 'Bearer t', 'application/json', '{"y":2}'],
        ['DELETE', '/c/d', 'Bearer t', undefined, ''],
      ],
    );
    assert.equal(connections, 1);
    await api.close();
  });

  it('know how far the clock of the server is ahead, from the last response', async () => {
    const api = client();
    assert.equal(api.clockOffset?.(), 0);
    for (const seconds of [300, -300]) {
      answer = { ...answer, date: new Date(Date.now() + seconds * 1000).toUTCString() };
      await api.get('/a');
      assert.ok(Math.abs((api.clockOffset?.() ?? 0) / 1000 - seconds) < 30);
    }
    answer = { status: 200, body: '{}' };
    await api.get('/a');
    assert.ok(Math.abs(api.clockOffset?.() ?? 0) < 30_000);
    await api.close();
  });

  it('keeps its connection when the response comes before the last byte of the request has left', async () => {
    early = true;
    const api = client();
    for (let i = 0; i < 5; i++) await api.create('/b', { text: 'x'.repeat(4e6) });
    assert.equal(connections, 1);
    await api.close();
  });

  it('have the Accept header of client-go, for every method', async () => {
    const api = client();
    await api.get('/a');
    await api.create('/a', {});
    await api.replace('/a', {});
    await api.patch('/a', 'application/merge-patch+json', {});
    await api.delete('/a');
    for await (const _ of await api.watch('/a', {}));
    assert.deepEqual(
      requests.map(({ accept }) => accept),
      new Array(6).fill('application/json, */*'),
    );
    await api.close();
  });

  it('do not treat a refused retry as a conflict if the answer to the write was lost', async () => {
    const api = client();
    await api.get('/a');
    lost = 1;
    answer = { status: 409, body: '{"reason":"Conflict","message":"the object has been modified"}' };
    await assert.rejects(
      api.replace('/a', {}),
      (error) => error instanceof KubeError && error.status === 0 && error.reason === 'Unreachable',
    );
    assert.deepEqual(
      requests.map(({ method }) => method),
      ['GET', 'PUT', 'PUT'],
    );
    await assert.rejects(api.replace('/a', {}), (error) => error instanceof KubeError && error.status === 409);
    await api.close();
  });

  it('use keep-alive probes, so that a watch ends when its server disappears', async () => {
    const api = client();
    delay = 60_000;
    const stop = new AbortController();
    const watching = api.watch('/a', { signal: stop.signal });
    await eventually(() => requests.length > 0, 'the server has the request');
    // proc_net_tcp(5): the timer `02:<ticks>` is that of keep-alive probes if all data is acknowledged.
    const [{ port = 0 } = assert.fail()] = requests;
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
    await api.close();
  });
});
