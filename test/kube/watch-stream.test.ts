import assert from 'node:assert/strict';
import { type KubeClient, KubeError, type RequestOptions } from '../../kube/client.ts';
import { createReflector } from '../../kube/reflector.ts';
import { node as nodeSchema } from '../../kube/resources.ts';
import { lines } from '../../kube/watch-pace.ts';
import { recordingLogger } from '../support/logger.ts';
import { until } from '../support/until.ts';

type WatchEvent = { readonly type: string; readonly object: Record<string, unknown> };

const node = (name: string, resourceVersion: string) => ({ metadata: { name, resourceVersion } });

/** A collection of Nodes whose watches send scripted events: one list for each watch. */
function scripted(watches: readonly (readonly WatchEvent[])[], listed: readonly object[] = [node('a', '1')]) {
  const watchedFrom: unknown[] = [];
  const timeouts: number[] = [];
  let lists = 0;
  const client = {
    get: async () => {
      lists++;
      return { metadata: { resourceVersion: `list-${lists}` }, items: listed };
    },
    watch: async (_path: string, { query = {} }: RequestOptions = {}) => {
      watchedFrom.push(query['resourceVersion']);
      timeouts.push(Number(query['timeoutSeconds']));
      const events = watches[watchedFrom.length - 1];
      return (async function* () {
        if (events === undefined) await new Promise(() => undefined);
        for (const event of events ?? []) yield Buffer.from(`${JSON.stringify(event)}\n`);
      })();
    },
  } as unknown as KubeClient;
  return {
    client,
    watchedFrom,
    timeouts,
    get lists() {
      return lists;
    },
  };
}

describe('a reflector and the events of its watch', () => {
  let stop: AbortController;
  beforeEach(() => {
    stop = new AbortController();
  });
  afterEach(() => stop.abort());

  const start = (client: KubeClient) => {
    let clock = 0;
    const { log, lines: logged } = recordingLogger();
    const reflector = createReflector({
      client,
      path: '/api/v1/nodes',
      schema: nodeSchema,
      project: ({ metadata }) => metadata.name ?? '',
      log,
      now: () => ++clock,
    });
    void reflector.run(stop.signal);
    return { reflector, logged };
  };

  it('continues from the version of the last event or bookmark, and does not store bookmarks', async () => {
    const api = scripted([
      [
        { type: 'ADDED', object: node('b', '5') },
        { type: 'BOOKMARK', object: { metadata: { resourceVersion: '9' } } },
      ],
      [{ type: 'MODIFIED', object: node('b', '11') }],
    ]);
    const { reflector } = start(api.client);
    await until('the third watch', () => api.watchedFrom.length >= 3);
    assert.deepEqual(api.watchedFrom, ['list-1', '9', '11']);
    assert.equal(api.lists, 1);
    assert.deepEqual([...reflector.items.keys()], ['a', 'b']);
  });

  it('lists again after an ERROR event with code 410', async () => {
    const api = scripted([[{ type: 'ERROR', object: { code: 410, message: 'too old resource version' } }]]);
    const { logged } = start(api.client);
    await until('the watch after the second list', () => api.watchedFrom.length >= 2);
    assert.deepEqual(api.watchedFrom, ['list-1', 'list-2']);
    assert.deepEqual(
      logged.filter(({ level }) => Number(level) >= 40),
      [],
      'an expired version is no fault',
    );
  });

  it('logs any other ERROR event with its code and text, keeps the cache, and resumes the watch', async () => {
    const api = scripted([[{ type: 'ERROR', object: { code: 500, message: 'etcd has no leader' } }], []]);
    const { reflector, logged } = start(api.client);
    await until('the second watch', () => api.watchedFrom.length >= 2);
    assert.equal(api.lists, 1);
    const [warning] = logged.filter(({ level }) => Number(level) >= 40) as { err: Record<string, unknown> }[];
    assert.match(String(warning?.err['message']), /watch \/api\/v1\/nodes: etcd has no leader/);
    assert.equal(warning?.err['status'], 500);
    assert.deepEqual([...reflector.items.keys()], ['a']);
  });

  it('treats an ERROR event without a code as status 0', async () => {
    const api = scripted([[{ type: 'ERROR', object: {} }], []]);
    const { logged } = start(api.client);
    await until('the second watch', () => api.watchedFrom.length >= 2);
    const [warning] = logged.filter(({ level }) => Number(level) >= 40) as { err: Record<string, unknown> }[];
    assert.deepEqual([warning?.err['status'], warning?.err['message']], [0, 'watch /api/v1/nodes: error event']);
  });

  it('requests watches of 290 to 435 seconds with different lengths', async () => {
    const api = scripted(Array.from({ length: 40 }, (_, i) => [{ type: 'ADDED', object: node('b', String(i)) }]));
    start(api.client);
    await until('40 watches', () => api.timeouts.length >= 40);
    assert.ok(
      api.timeouts.every((seconds) => seconds >= 290 && seconds <= 435),
      `${api.timeouts}`,
    );
    assert.ok(new Set(api.timeouts).size > 1);
  });
});

describe('a line of a watch', () => {
  async function* chunksOf(...texts: string[]) {
    for (const text of texts) yield Buffer.from(text);
  }
  const read = async (longest: number, ...texts: string[]) => {
    const received: string[] = [];
    for await (const line of lines(chunksOf(...texts), longest)) received.push(line);
    return received;
  };
  const isTooLarge = (error: unknown) =>
    error instanceof KubeError && error.reason === 'TooLarge' && error.status === 0;

  it('may have as many bytes as the limit, over any number of chunks', async () => {
    assert.deepEqual(await read(4, 'ab', 'cd', '\nefgh', '\n'), ['abcd', 'efgh']);
  });

  it('is refused one byte above the limit, counted from its own start', async () => {
    await assert.rejects(read(4, 'abcd', 'e'), isTooLarge);
    await assert.rejects(read(4, 'abcdefgh\nab', 'cde'), isTooLarge);
    assert.deepEqual(await read(4, 'abcdefgh\nab', 'cd\n'), ['abcdefgh', 'abcd']);
  });

  it('is not counted if it is empty, and dropped if it is incomplete', async () => {
    assert.deepEqual(await read(10, '\n\na\n\n', 'rest'), ['a']);
    assert.deepEqual(await read(10), []);
  });
});
