import assert from 'node:assert/strict';
import { EventEmitter } from 'node:events';
import { typeAt } from '../../sandbox/api-server/built-in-types.ts';
import { streamWatch } from '../../sandbox/api-server/watch.ts';
import { startApiServer } from './support.ts';

/** A response with a slow client: a write after its end fails, like a socket's. */
class SlowResponse extends EventEmitter {
  writableEnded = false;
  destroyed = false;
  writes = 0;
  writeHead(): this {
    return this;
  }
  flushHeaders(): void {}
  write(): boolean {
    if (this.writableEnded) throw new Error('write after end');
    this.writes++;
    return true;
  }
  end(): void {
    this.writableEnded = true;
  }
}

describe('sandbox API server: a watch that has ended', () => {
  it('writes nothing while its connection is closing', async () => {
    const { server } = await startApiServer();
    try {
      const response = new SlowResponse();
      const stopping = new AbortController();
      const type = typeAt('', 'v1', 'configmaps');
      assert.ok(type);
      streamWatch(
        {
          store: server.store,
          registry: server.registry,
          now: Date.now,
          bookmarkSeconds: 10,
          stopping: stopping.signal,
        },
        {
          request: { headers: {} },
          response,
          query: new URLSearchParams(),
          route: { type, namespace: 'default', name: undefined, subresource: '' },
          user: { username: 'u', groups: [] },
        } as never,
        () => true,
      );
      const call = { user: { username: 'u', groups: [] }, dryRun: false, warn: () => undefined };
      const create = (name: string) =>
        server.registry.create(type, 'default', { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name } }, call);
      await create('before');
      stopping.abort();
      assert.equal(response.writableEnded, true);
      await create('after');
      assert.equal(response.writes, 1);
      response.emit('close');
    } finally {
      await server.stop();
    }
  });
});
