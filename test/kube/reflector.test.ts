import assert from 'node:assert/strict';
import { type Change, createReflector } from '../../kube/reflector.ts';
import { node as nodeSchema } from '../../kube/resources.ts';
import { monotonicSeconds, sleep } from '../../runtime/time.ts';
import { silent } from '../support/logger.ts';
import { type ApiFixture, startApi } from './api-fixture.ts';

const node = (name: string, labels: Record<string, string> = {}) => ({
  apiVersion: 'v1',
  kind: 'Node',
  metadata: { name, labels },
});

async function eventually(what: string, holds: () => boolean, seconds = 5): Promise<void> {
  const deadline = monotonicSeconds() + seconds;
  while (!holds()) {
    if (monotonicSeconds() > deadline) assert.fail(`never came true: ${what}`);
    await sleep(0.01);
  }
}

describe('a reflector', () => {
  let api: ApiFixture;
  let running: AbortController;
  let changes: Change<string>[];

  beforeEach(async () => {
    api = await startApi({ history: 20, bookmarkSeconds: 0.2 });
    running = new AbortController();
    changes = [];
  });
  afterEach(async () => {
    running.abort();
    await api.stop();
  });

  const start = (path = '/api/v1/nodes', optional = false) => {
    const reflector = createReflector({
      client: api.client,
      path,
      schema: nodeSchema,
      project: ({ metadata }) => metadata.labels?.['color'] ?? '',
      onChange: (change) => changes.push(change),
      optional,
      log: silent,
      now: monotonicSeconds,
    });
    void reflector.run(running.signal);
    return reflector;
  };

  it('lists in pages, then follows', async () => {
    for (let i = 0; i < 1203; i++) await api.client.create('/api/v1/nodes', node(`n${i}`));
    const reflector = start();
    await reflector.whenSynced;
    assert.equal(reflector.items.size, 1203);
    await api.client.create('/api/v1/nodes', node('late', { color: 'red' }));
    await eventually('the new node', () => reflector.items.get('late') === 'red');
    await api.client.patch('/api/v1/nodes/late', 'application/merge-patch+json', {
      metadata: { labels: { color: 'blue' } },
    });
    await eventually('the change', () => reflector.items.get('late') === 'blue');
    await api.client.delete('/api/v1/nodes/late');
    await eventually('the deletion', () => !reflector.items.has('late'));
    const ofLate = changes.filter(({ key }) => key === 'late').map(({ before, after }) => [before, after]);
    assert.deepEqual(ofLate, [
      [undefined, 'red'],
      ['red', 'blue'],
      ['blue', undefined],
    ]);
  }).timeout(30_000);

  it('goes on after the server was away, and misses nothing that happened meanwhile', async () => {
    const reflector = start();
    await reflector.whenSynced;
    await api.client.create('/api/v1/nodes', node('one'));
    await eventually('the first node', () => reflector.items.has('one'));
    await api.server.stop();
    await sleep(0.2);
    assert.ok(reflector.items.has('one'), 'the last copy stays');
    await api.server.start();
    // More changes than the server remembers: the old version is gone, and a new list must find them.
    for (let i = 0; i < 40; i++) await api.client.create('/api/v1/nodes', node(`more-${i}`));
    await api.client.delete('/api/v1/nodes/one');
    await eventually('the new list', () => reflector.items.size === 40 && !reflector.items.has('one'), 15);
  }).timeout(20_000);

  it('hears bookmarks where nothing changes', async () => {
    const reflector = start();
    await reflector.whenSynced;
    const first = reflector.lastHeard ?? 0;
    await eventually('a bookmark', () => (reflector.lastHeard ?? 0) > first);
  });

  it('counts an optional kind that is not installed as empty', async () => {
    const reflector = start('/apis/not.installed.example/v1/things', true);
    await reflector.whenSynced;
    assert.equal(reflector.items.size, 0);
  });

  it('is not synced while a needed kind cannot be listed', async () => {
    const reflector = start('/apis/not.installed.example/v1/things');
    await sleep(0.3);
    assert.equal(reflector.synced, false);
  });
});
