import assert from 'node:assert/strict';
import { type KubeClient, KubeError, type RequestOptions } from '../../kube/client.ts';
import { type PagesOptions, pagesOf } from '../../kube/list-pages.ts';
import { type Change, createReflector } from '../../kube/reflector.ts';
import { node as nodeSchema } from '../../kube/resources.ts';
import { lines } from '../../kube/watch-stream.ts';
import { monotonicSeconds, sleep } from '../../runtime/time.ts';
import { eventually } from '../support/eventually.ts';
import { silent } from '../support/logger.ts';
import { processorTimeOf } from '../support/processor-time.ts';
import { startApi } from './api-fixture.ts';

const NODES = '/api/v1/nodes';
const node = (name: string, labels: Record<string, string> = {}) => ({
  apiVersion: 'v1',
  kind: 'Node',
  metadata: { name, labels },
});
describe('a reflector', () => {
  it('lists in pages, watches, and resumes after the server was down without missing a change', async () => {
    const api = await startApi({ history: 20, bookmarkSeconds: 0.2 });
    const running = new AbortController();
    const changes: Change<string>[] = [];
    for (let i = 0; i < 503; i++) await api.client.create(NODES, node(`n${i}`));
    const reflector = createReflector({
      client: api.client,
      path: NODES,
      schema: nodeSchema,
      project: ({ metadata }) => metadata.labels?.['color'] ?? '',
      onChange: (change) => changes.push(change),
      log: silent,
      nowSeconds: monotonicSeconds,
    });
    void reflector.run(running.signal);
    await reflector.whenSynced;
    assert.equal(reflector.items.size, 503);
    await api.client.create(NODES, node('late', { color: 'red' }));
    await eventually(() => reflector.items.get('late') === 'red', 'the new node');
    const blue = { metadata: { labels: { color: 'blue' } } };
    await api.client.patch(`${NODES}/late`, 'application/merge-patch+json', blue);
    await eventually(() => reflector.items.get('late') === 'blue', 'the change');
    await api.client.delete(`${NODES}/late`);
    await eventually(() => !reflector.items.has('late'), 'the deletion');
    const ofLate = changes.filter(({ key }) => key === 'late').map(({ before, after }) => [before, after]);
    assert.deepEqual(ofLate, [
      [undefined, 'red'],
      ['red', 'blue'],
      ['blue', undefined],
    ]);

    await api.server.stop();
    await sleep(0.2);
    assert.ok(reflector.items.has('n0'), 'the last copy stays');
    await api.server.start();
    // More changes than the server remembers: the old version has expired, and a new list must find them.
    for (let i = 0; i < 40; i++) await api.client.create(NODES, node(`more-${i}`));
    await api.client.delete(`${NODES}/n0`);
    await eventually(() => reflector.items.size === 542 && !reflector.items.has('n0'), 'the new list');
    running.abort();
    await api.stop();
  }).timeout(300_000);
});
describe('a reflector of many objects', () => {
  it('processes thousands of them in slices', async () => {
    const items = Array.from({ length: 5000 }, (_, i) => ({ metadata: { name: `n${i}`, resourceVersion: '1' } }));
    const client = {
      get: async () => ({ metadata: { resourceVersion: '9' }, items }),
      watch: () => new Promise(() => undefined),
    } as unknown as KubeClient;
    let turns = 0;
    let ended = false;
    const turn = () => {
      turns++;
      if (!ended) setImmediate(turn);
    };
    setImmediate(turn);
    const reflector = createReflector({
      client,
      path: NODES,
      schema: nodeSchema,
      project: ({ metadata }) => metadata.name ?? '',
      onChange: () => {
        const until = performance.now() + 0.02;
        while (performance.now() < until);
      },
      log: silent,
      nowSeconds: monotonicSeconds,
    });
    void reflector.run(AbortSignal.timeout(60_000));
    await reflector.whenSynced;
    ended = true;
    assert.ok(turns >= 8, `others had ${turns} turns`);
  });
});
describe('lines of a watch', () => {
  const chunks = async function* (text: string, size: number) {
    const bytes = Buffer.from(text);
    for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
  };
  const all = async (stream: AsyncIterable<Uint8Array>, longest = 1000) => {
    const keys: string[] = [];
    for await (const line of lines(stream, longest)) keys.push(line);
    return keys;
  };

  it('are joined across chunks, including characters of several bytes', async () => {
    for (const size of [1, 2, 3, 7, 100]) {
      assert.deepEqual(await all(chunks('{"a":"ä€"}\n\n{"b":1}\nrest', size)), ['{"a":"ä€"}', '{"b":1}']);
    }
  });
  it('are counted from their own start, and one byte above the limit is refused', async () => {
    const parts = async function* (...texts: string[]) {
      for (const part of texts) yield Buffer.from(part);
    };
    assert.deepEqual(await all(parts('abcdefgh\nab', 'cd\n'), 4), ['abcdefgh', 'abcd']);
    await assert.rejects(all(parts('abcdefgh\nab', 'cde'), 4), { status: 0, reason: 'TooLarge' });
  });
  it('take time in proportion to their length, for any number of chunks', async () => {
    const read = (length: number) => processorTimeOf(() => all(chunks(`${'x'.repeat(length)}\n`, 16), 1e9));
    await read(100_000);
    const [once, tenfold] = [await read(400_000), await read(4_000_000)];
    assert.ok(tenfold < 40 * Math.max(once, 5), `${once} ms and ${tenfold} ms`);
  });
});

const MIB = 1024 * 1024;
/** A list of objects with these sizes, which answers like the API server and records all requests. */
function listOf(sizes: readonly number[]) {
  const requests: { limit: number; from: number; largest: number }[] = [];
  const get = async (_path: string, { query = {}, largest = 0 }: RequestOptions = {}) => {
    const [limit, from] = [Number(query['limit']), Number(query['continue'] ?? 0)];
    requests.push({ limit, from, largest });
    const items = sizes.slice(from, from + limit);
    if (items.reduce((sum, size) => sum + size, 0) > largest) throw new KubeError(0, 'TooLarge', 'too large');
    const next = from + limit < sizes.length ? String(from + limit) : '';
    return { metadata: { resourceVersion: '7', continue: next }, items };
  };
  return { client: { get } as PagesOptions['client'], requests };
}
const listAll = async (client: PagesOptions['client'], page: number) => {
  const all: unknown[] = [];
  for await (const { items } of pagesOf({ client, path: '/x', page })) all.push(...(items ?? []));
  return all;
};
describe('the pages of a list', () => {
  it('shrink to a quarter if one is too large, and grow again to half of it, later to all of it', async () => {
    const { client, requests } = listOf([...Array(16).fill(MIB / 4), ...Array(100).fill(1)]);
    assert.equal((await listAll(client, 16)).length, 116);
    const limits = requests.map(({ limit }) => limit);
    assert.deepEqual(limits.slice(0, 5), [16, 4, 8, 8, 8]);
    assert.equal(Math.max(...limits.slice(1)), 16);
    assert.equal(limits.indexOf(16, 1), 5, `${limits}`);
  });

  it('may have 16 MiB with one object, otherwise 2 MiB', async () => {
    const { client, requests } = listOf([15 * MIB, 1]);
    assert.deepEqual(await listAll(client, 4), [15 * MIB, 1]);
    assert.deepEqual(
      requests.slice(0, 2).map(({ limit, largest }) => [limit, largest / MIB]),
      [
        [4, 2],
        [1, 16],
      ],
    );
  });

  it('fail for one object above 16 MiB, without a retry', async () => {
    const { client, requests } = listOf([17 * MIB]);
    await assert.rejects(listAll(client, 4), { reason: 'TooLarge' });
    assert.deepEqual(
      requests.map(({ limit }) => limit),
      [4, 1],
    );
  });

  it('fail at once for any other error', async () => {
    let calls = 0;
    const get = async () => {
      calls++;
      throw new KubeError(403, 'Forbidden', 'no');
    };
    await assert.rejects(listAll({ get }, 4), { reason: 'Forbidden' });
    assert.equal(calls, 1);
  });

  it('are requested with the query, the signal and the timeout of the caller', async () => {
    const requests: unknown[] = [];
    const { signal } = new AbortController();
    const get = async (path: string, options: RequestOptions = {}) => {
      requests.push([path, options]);
      return { metadata: { resourceVersion: '7' }, items: null };
    };
    for await (const _ of pagesOf({
      client: { get },
      path: '/x',
      query: { labelSelector: 'a=b' },
      page: 10,
      signal,
      timeout: 7,
    }));
    const query = { labelSelector: 'a=b', limit: 10, continue: undefined };
    assert.deepEqual(requests, [['/x', { signal, largest: 2 * MIB, timeout: 7, query }]]);
  });

  it('have at least one object, and shrink again if they grew too far, then for twice as many pages', async () => {
    const { client, requests } = listOf([...Array(4).fill(MIB * 1.5), ...Array(12).fill(1)]);
    assert.equal((await listAll(client, 3)).length, 16);
    assert.deepEqual(
      requests.map(({ limit }) => limit),
      [3, 1, 2, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2],
    );
  });
});
