import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type Server, type ServerResponse } from 'node:http';
import { setImmediate as turn } from 'node:timers/promises';
import { EventStream } from '../../../console/server/stream.ts';
import { listenOnLoopback } from '../../support/processes.ts';
import { type Listener, listen } from '../support.ts';

/** A feed with content from the test. */
function feedOf() {
  const viewers = new Set<(keys: Iterable<string>) => void>();
  const records = new Map<string, string>();
  const feed = {
    records,
    complete: true,
    watch(onNews: (keys: Iterable<string>) => void) {
      viewers.add(onNews);
      return () => void viewers.delete(onNews);
    },
    get viewers() {
      return viewers.size;
    },
  };
  const tell = (key: string) => {
    for (const viewer of viewers) viewer([key]);
  };
  const put = (key: string, record: unknown) => {
    records.set(key, JSON.stringify(record));
    tell(key);
  };
  const end = (key: string) => {
    records.delete(key);
    tell(key);
  };
  return { feed, put, end };
}

const LARGE = 'x'.repeat(64 * 1024);

describe('the stream to a page', () => {
  let server: Server;
  let responses: ServerResponse[];
  const clients: Listener[] = [];
  const serve = async (
    feed: ConstructorParameters<typeof EventStream>[0]['feed'],
    options: { gzip?: boolean; beat?: number; patience?: number } = {},
  ) => {
    responses = [];
    server = createServer((_, response) => {
      responses.push(response);
      new EventStream({ feed, response, gzip: false, ...options });
    });
    const client = await listen(`http://127.0.0.1:${await listenOnLoopback(server)}/`);
    clients.push(client);
    return client;
  };
  afterEach(() => {
    for (const client of clients.splice(0)) client.close();
    server.closeAllConnections();
    server.close();
  });

  for (const gzip of [false, true]) {
    it(`buffers nothing for a page that does not read${gzip ? ', with gzip, too' : ''}, and updates it when it reads again`, async () => {
      const { feed, put } = feedOf();
      const client = await serve(feed, { gzip });
      await client.until(({ event }) => event === 'ready');
      client.pause();
      let most = 0;
      const texts = Array.from({ length: 8 }, () => randomBytes(LARGE.length / 2).toString('hex'));
      const changes = 600;
      for (let at = 1; at <= changes; at++) {
        put('a', ['a', at, texts[at % texts.length]]);
        most = Math.max(most, responses[0]!.writableLength);
        await turn();
      }
      assert.ok(most < 4 * LARGE.length, `${most} bytes were kept`);
      client.resume();
      await client.until(({ data }) => data.startsWith(`[["a",${changes},`));
      const received = client.events.filter(({ event }) => event === 'message').length;
      assert.ok(received < changes, `${received} of ${changes} states were sent`);
    });
  }

  it('ends the connection to a page that reads nothing for too long', async () => {
    const { feed, put } = feedOf();
    const client = await serve(feed, { beat: 10, patience: 50 });
    await client.until(({ event }) => event === 'ready');
    client.pause();
    for (let at = 0; !responses[0]!.writableNeedDrain; at++) {
      put(`a${at}`, [LARGE]);
      await turn();
    }
    await once(responses[0]!, 'close');
    assert.equal(feed.viewers, 0);
  });

  it('has heartbeats while the connection works', async () => {
    const { feed } = feedOf();
    const client = await serve(feed, { beat: 5 });
    const first = await client.until(({ event }) => event === 'beat');
    await client.until((event) => event.event === 'beat' && event !== first);
  });

  it('has for each thing its newest record or its end, for a page that reads slowly and for a new one', async () => {
    const { feed, put, end } = feedOf();
    for (const key of ['na', 'nb', 'nc']) put(key, ['n', key.slice(1), 1]);
    const client = await serve(feed);
    await client.until(({ event }) => event === 'ready');
    end('na');
    put('nb', ['n', 'b', 2]);
    end('nc');
    put('nc', ['n', 'c', 2]);
    await client.until(({ data }) => data === '[["n","c",2]]');
    const records = client.events.filter(({ event }) => event === 'message').flatMap(({ data }) => JSON.parse(data));
    const newest = new Map(records.map((record) => [record[1], JSON.stringify(record)]));
    assert.deepEqual([...newest.values()], ['["n","a"]', '["n","b",2]', '["n","c",2]']);
    assert.deepEqual([...feed.records.keys()], ['nb', 'nc']);
  });

  it('releases everything when the page disconnects', async () => {
    const { feed } = feedOf();
    const client = await serve(feed);
    assert.equal(feed.viewers, 1);
    const closed = once(responses[0]!, 'close');
    client.close();
    await closed;
    assert.equal(feed.viewers, 0);
  });
});
