import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createExplainServer } from '../../../scheduler-plugin/http/explain-server.ts';
import { recordingLogger } from '../../support/logger.ts';

/** A loopback port without a listener. */
async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}

function ask(port: number, path: string, host = `127.0.0.1:${port}`): Promise<[number | undefined, string]> {
  return new Promise((resolve, reject) => {
    const call = request({ host: '127.0.0.1', port, path, headers: { host } }, async (response) => {
      let text = '';
      for await (const chunk of response) text += String(chunk);
      resolve([response.statusCode, text]);
    });
    call.on('error', reject);
    call.end();
  });
}

describe('the explain server on the loopback address', () => {
  const appOf = (handled: string[]) => ({
    handler: (call: { url?: string }, response: { end(text: string): void }) => {
      handled.push(call.url ?? '');
      response.end('explained');
    },
  });

  it('serves only /explain, and only if the Host header names a loopback address', async () => {
    const handled: string[] = [];
    const port = await freePort();
    const { log } = recordingLogger();
    const server = createExplainServer({ address: { host: '127.0.0.1', port }, app: appOf(handled) as never, log });
    await server.start();
    try {
      assert.deepEqual(await ask(port, '/explain?pod=a/b'), [200, 'explained']);
      assert.deepEqual(await ask(port, '/explain', `localhost:${port}`), [200, 'explained']);
      for (const path of ['/', '/filter', '/explain/', '/metrics?x=/explain']) {
        assert.deepEqual(await ask(port, path), [404, 'expected GET or POST /explain\n']);
      }
      for (const host of ['evil.example', `evil.example:${port}`, 'localhost.evil.example']) {
        assert.deepEqual(await ask(port, '/explain', host), [421, 'use http://localhost\n']);
      }
      assert.deepEqual(handled, ['/explain?pod=a/b', '/explain']);
    } finally {
      await server.stop();
    }
  });

  it('logs a port that is in use, and the extender continues without the server', async () => {
    const taken = createServer().listen(0, '127.0.0.1');
    await once(taken, 'listening');
    const { port } = taken.address() as AddressInfo;
    const logged = recordingLogger();
    const server = createExplainServer({
      address: { host: '127.0.0.1', port },
      app: appOf([]) as never,
      log: logged.log,
    });
    await server.start();
    assert.ok(logged.said('explain server failed to start (--explain-address)'));
    taken.close();
  });
});
