import assert from 'node:assert/strict';
import { Agent, request } from 'node:http';
import { connect, type Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import { appOf, useServer } from '../app-fixture.ts';
import { extenderOf, podOf } from '../extender-fixture.ts';

const BODY = JSON.stringify({ Pod: podOf('4'), Nodes: null, NodeNames: ['n1'] });

/** Seconds for which kube-scheduler keeps an idle connection (IdleConnTimeout of Go's transport in client-go). */
const CLIENT_KEEPS = 90;

describe('the connections of the extender', () => {
  const server = useServer();
  const sockets = new Set<Socket>();
  before(() => {
    const { handler } = appOf(extenderOf());
    server.serve((call, response) => {
      sockets.add(call.socket);
      handler(call, response);
    });
  });

  for (const [what, url, answer] of [
    ['a URL that cannot be parsed gets no answer', 'http://[x', /^$/],
    ['an absolute URL with an invalid port is answered', 'http://x:99999/explain?pod=n/p', /^HTTP\/1\.1 [24]/],
  ] as const) {
    it(`${what}, and the connection ends`, async () => {
      const socket = connect({ host: '127.0.0.1', port: server.port });
      socket.write(`GET ${url} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n`);
      assert.match(await text(socket), answer);
    });
  }

  it('are closed by the scheduler, because the idle timeout of the server is longer', async () => {
    sockets.clear();
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const filter = () =>
      new Promise<void>((resolve, reject) => {
        const headers = { 'content-length': Buffer.byteLength(BODY) };
        const to = { host: '127.0.0.1', port: server.port, path: '/filter', method: 'POST', agent, headers };
        const call = request(to, (response) => response.resume().on('end', resolve));
        call.on('error', reject).end(BODY);
      });
    for (let call = 0; call < 2; call++) {
      await filter();
      await delay(50);
      const timeouts = [...sockets].map(({ timeout }) => (timeout ?? 0) / 1000);
      assert.equal(timeouts.length, 1);
      assert.ok(timeouts[0]! > CLIENT_KEEPS, `the server closes an idle connection after ${timeouts[0]} s`);
    }
    agent.destroy();
  });
});
