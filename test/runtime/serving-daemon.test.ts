import assert from 'node:assert/strict';
import type { RequestListener } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { createServingDaemon, type DrainTimes } from '../../runtime/daemon.ts';
import { createHttpServer } from '../../runtime/http-server.ts';
import { createRegistry } from '../../runtime/metrics.ts';
import { silent } from '../support/logger.ts';

/** Longer than the interval of the calls below, even on a busy machine. */
const QUIET = 1;

describe('a serving daemon that is stopped', () => {
  const start = async (drain: DrainTimes) => {
    const handler: RequestListener = (_request, response) => response.end('ok');
    const server = createHttpServer({ handler, host: '127.0.0.1', port: 0, log: silent });
    let closed = 0;
    const daemon = createServingDaemon({
      server,
      probes: { host: '127.0.0.1', port: 0 },
      notReady: () => undefined,
      registry: createRegistry(),
      run: async () => undefined,
      close: async () => void closed++,
      drain,
      log: silent,
    });
    await daemon.start();
    const call = async () => {
      const answer = await fetch(`http://127.0.0.1:${server.port}/`, { headers: { connection: 'close' } });
      return `${answer.status} ${await answer.text()}`;
    };
    return { daemon, call, closed: () => closed };
  };

  it('keeps answering while calls arrive, and closes after a quiet time', async () => {
    const { daemon, call, closed } = await start({ quiet: QUIET, most: 60 });
    let stopped = false;
    const stopping = daemon.stop().then(() => {
      stopped = true;
    });
    // Callers that have not noticed yet, for several times as long as the daemon waits for a call.
    const deadline = performance.now() + 4 * QUIET * 1000;
    let answered = 0;
    while (performance.now() < deadline) {
      assert.equal(await call(), '200 ok');
      answered++;
      assert.ok(!stopped && closed() === 0);
      await delay(20);
    }
    await stopping;
    assert.equal(closed(), 1);
    assert.ok(answered > 0);
    await assert.rejects(call());
  });

  it('finally closes even if calls keep arriving', async () => {
    const { daemon, call, closed } = await start({ quiet: 60, most: 0.5 });
    let stopped = false;
    const stopping = daemon.stop().then(() => {
      stopped = true;
    });
    while (!stopped) await call().catch(() => delay(20));
    await stopping;
    assert.equal(closed(), 1);
  });
});
