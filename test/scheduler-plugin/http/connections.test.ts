import assert from 'node:assert/strict';
import { Agent, type RequestListener, request } from 'node:http';
import { connect, type Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import { createHttpServer, type HttpServer } from '../../../runtime/http-server.ts';
import { silent } from '../../support/logger.ts';
import { appOf } from '../app-fixture.ts';
import { extenderOf, podOf } from '../extender-fixture.ts';

const BODY = JSON.stringify({ Pod: podOf('4'), Nodes: null, NodeNames: ['n1'] });

/** Seconds for which kube-scheduler keeps an idle connection (IdleConnTimeout of Go's transport in client-go). */
const CLIENT_KEEPS = 90;

interface Answer {
  readonly socket: Socket;
  readonly names: readonly string[] | null;
}

describe('the connections of the extender', () => {
  let server: HttpServer | undefined;
  afterEach(() => server?.stop(0));

  /** @param sockets receives the socket of each call */
  const serve = async (sockets = new Set<Socket>()) => {
    const app = appOf(extenderOf());
    const handler: RequestListener = (request, response) => {
      sockets.add(request.socket);
      app.handler(request, response);
    };
    server = createHttpServer({ handler, host: '127.0.0.1', port: 0, log: silent });
    await server.start();
  };
  const filter = (agent: Agent) =>
    new Promise<Answer>((resolve, reject) => {
      const headers = { 'content-length': Buffer.byteLength(BODY) };
      const to = { host: '127.0.0.1', port: server?.port, path: '/filter', method: 'POST' };
      const call = request({ ...to, agent, headers }, (response) => {
        let text = '';
        const { socket } = response;
        response.setEncoding('utf8').on('data', (chunk: string) => {
          text += chunk;
        });
        response.on('end', () => resolve({ socket, names: (JSON.parse(text) as { NodeNames: string[] }).NodeNames }));
      });
      call.on('error', reject).end(BODY);
    });

  for (const [what, url, answer] of [
    ['a URL that cannot be parsed gets no answer', 'http://[x', /^$/],
    ['an absolute URL with an invalid port is answered', 'http://x:99999/explain?pod=n/p', /^HTTP\/1\.1 [24]/],
  ] as const) {
    it(`${what}, and the connection ends`, async () => {
      await serve();
      const socket = connect({ host: '127.0.0.1', port: server?.port ?? 0 });
      socket.write(`GET ${url} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n`);
      assert.match(await text(socket), answer);
    });
  }

  it('are closed by the scheduler, because the idle timeout of the server is longer', async () => {
    const sockets = new Set<Socket>();
    await serve(sockets);
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    for (let call = 0; call < 2; call++) {
      await filter(agent);
      await delay(50);
      const timeouts = [...sockets].map(({ timeout }) => (timeout ?? 0) / 1000);
      assert.equal(timeouts.length, 1);
      assert.ok(timeouts[0]! > CLIENT_KEEPS, `the server closes an idle connection after ${timeouts[0]} s`);
    }
    agent.destroy();
  });
});
