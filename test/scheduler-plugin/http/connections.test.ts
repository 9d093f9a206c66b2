import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import type { RequestListener } from 'node:http';
import { Agent, type RequestOptions, request } from 'node:https';
import type { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { createHttpServer, type HttpServer } from '../../../runtime/http-server.ts';
import { createCertificateAuthority } from '../../../sandbox/certificates.ts';
import { silent } from '../../support/logger.ts';
import { appOf } from '../app-fixture.ts';
import { extenderOf, podOf } from '../extender-fixture.ts';

const BODY = JSON.stringify({ Pod: podOf('4'), Nodes: null, NodeNames: ['n1'] });

/** Seconds: longer than the request timeout of the server and the default idle timeout of Node.js. */
const PAUSE = 12;
/** Seconds for which kube-scheduler keeps an idle connection (IdleConnTimeout of Go's transport in client-go). */
const CLIENT_KEEPS = 90;

interface Answer {
  readonly socket: Socket;
  readonly names: readonly string[] | null;
}

describe('the connections of the extender', () => {
  const authority = createCertificateAuthority('extender');
  const clients = createCertificateAuthority('schedulers');
  let folder: string;
  let server: HttpServer | undefined;

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'plumbline-extender-'));
    const { cert, key } = authority.issue(['127.0.0.1']);
    const files = { 'tls.crt': cert, 'tls.key': key, 'clients.crt': clients.cert };
    for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text);
  });
  afterEach(() => server?.stop(0));
  after(() => rm(folder, { recursive: true }));

  /** @param sockets receives the socket of each call */
  const serve = async (more: { clientCaFile?: string } = {}, sockets = new Set<Socket>()) => {
    const app = appOf(extenderOf());
    const handler: RequestListener = (request, response) => {
      sockets.add(request.socket);
      app.handler(request, response);
    };
    const certificate = { certFile: join(folder, 'tls.crt'), keyFile: join(folder, 'tls.key'), ...more };
    server = createHttpServer({ handler, host: '127.0.0.1', port: 0, certificate, log: silent });
    await server.start();
    return server;
  };
  const filter = (agent: Agent, more: RequestOptions = {}) =>
    new Promise<Answer>((resolve, reject) => {
      const headers = { 'content-length': Buffer.byteLength(BODY) };
      const to = { host: '127.0.0.1', port: server?.port, path: '/filter', method: 'POST' };
      const call = request({ ...to, agent, headers, ...more }, (response) => {
        let text = '';
        const { socket } = response;
        response.setEncoding('utf8').on('data', (chunk: string) => {
          text += chunk;
        });
        response.on('end', () => resolve({ socket, names: (JSON.parse(text) as { NodeNames: string[] }).NodeNames }));
      });
      call.on('error', reject).end(BODY);
    });

  it(`stay open for ${PAUSE} seconds between two calls`, async function () {
    this.timeout((PAUSE + 30) * 1000);
    await serve();
    const agent = new Agent({ keepAlive: true, maxSockets: 1, ca: authority.cert });
    const first = await filter(agent);
    await delay(PAUSE * 1000);
    const second = await filter(agent);
    assert.equal(second.socket, first.socket, 'one socket');
    assert.deepEqual(second.names, ['n1']);
    agent.destroy();
  });

  it('are closed by the scheduler, because the idle timeout of the server is longer', async () => {
    const sockets = new Set<Socket>();
    await serve({}, sockets);
    const agent = new Agent({ keepAlive: true, maxSockets: 1, ca: authority.cert });
    for (let call = 0; call < 2; call++) {
      await filter(agent);
      await delay(50);
      const timeouts = [...sockets].map(({ timeout }) => (timeout ?? 0) / 1000);
      assert.equal(timeouts.length, 1);
      assert.ok(timeouts[0]! > CLIENT_KEEPS, `the server closes an idle connection after ${timeouts[0]} s`);
    }
    agent.destroy();
  });

  it('are limited to known clients if a client CA is set', async () => {
    await serve({ clientCaFile: join(folder, 'clients.crt') });
    const agentOf = (more: object) => new Agent({ ca: authority.cert, ...more });
    const { cert, key } = clients.issue(['kube-scheduler']);
    assert.deepEqual((await filter(agentOf({ cert, key }))).names, ['n1']);
    await assert.rejects(filter(agentOf({})));
    const stranger = createCertificateAuthority('strangers').issue(['kube-scheduler']);
    await assert.rejects(filter(agentOf({ cert: stranger.cert, key: stranger.key })));
  });
});
