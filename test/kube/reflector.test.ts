import assert from 'node:assert/strict';
import type { KubeClient } from '../../kube/client.ts';
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
      now: monotonicSeconds,
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
      now: monotonicSeconds,
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
