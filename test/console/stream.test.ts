import assert from 'node:assert/strict';
import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setImmediate as turn } from 'node:timers/promises';
import type { Feed } from '../../console/server/feed.ts';
import { RecordLog } from '../../console/server/record-log.ts';
import { streamEvents } from '../../console/server/stream.ts';
import { type Listener, listen } from './events.ts';

/** A feed with content from the test. */
function feedOf(mostEnds?: number) {
  const viewers = new Set<() => void>();
  const records = new RecordLog(mostEnds);
  const feed = {
    epoch: 'aaaa',
    records,
    complete: true,
    watch(onNews: () => void) {
      viewers.add(onNews);
      return () => void viewers.delete(onNews);
    },
    get viewers() {
      return viewers.size;
    },
  } satisfies Feed;
  return {
    feed,
    tell() {
      for (const viewer of viewers) viewer();
    },
  };
}

const LARGE = 'x'.repeat(64 * 1024);

describe('the stream to a page', () => {
  let server: Server;
  let responses: ServerResponse[];
  const clients: Listener[] = [];
  const serve = async (feed: Feed, options: { gzip?: boolean; beat?: number; patience?: number } = {}) => {
    responses = [];
    server = createServer((_, response) => {
      responses.push(response);
      streamEvents({ feed, response, gzip: false, lastId: undefined, ...options });
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const client = await listen(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`);
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
      const { feed, tell } = feedOf();
      const client = await serve(feed, { gzip });
      await client.until(({ event }) => event === 'ready');
      client.pause();
      let most = 0;
      const random = (at: number) =>
        LARGE.replace(/x/g, () => String.fromCharCode(97 + Math.floor(Math.random() * 26))) + at;
      const texts = Array.from({ length: 8 }, (_, k) => random(k));
      const changes = 600;
      for (let at = 1; at <= changes; at++) {
        feed.records.put('a', JSON.stringify(['a', at, texts[at % texts.length]]));
        tell();
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
    const { feed, tell } = feedOf();
    const client = await serve(feed, { beat: 10, patience: 50 });
    await client.until(({ event }) => event === 'ready');
    client.pause();
    for (let at = 0; !responses[0]!.writableNeedDrain; at++) {
      feed.records.put(`a${at}`, JSON.stringify([LARGE]));
      tell();
      await turn();
    }
    await new Promise<void>((resolve) => responses[0]!.once('close', resolve));
    assert.equal(feed.viewers, 0);
  });

  it('has heartbeats while the connection works', async () => {
    const { feed } = feedOf();
    const client = await serve(feed, { beat: 5 });
    const first = await client.until(({ event }) => event === 'beat');
    await client.until((event) => event.event === 'beat' && event !== first);
  });

  it('starts again for a page that is too far behind', async () => {
    const { feed, tell } = feedOf(1);
    for (const key of ['a', 'b', 'c']) feed.records.put(key, JSON.stringify([key, 1]));
    const client = await serve(feed);
    await client.until(({ event }) => event === 'ready');
    for (const key of ['a', 'b']) feed.records.end(key, JSON.stringify([key]));
    tell();
    const hello = await client.until(({ event }) => event === 'hello', 1);
    assert.equal((JSON.parse(hello.data) as { resumed: boolean }).resumed, false);
    const again = await client.until(({ event }) => event === 'message', client.events.indexOf(hello));
    assert.deepEqual(JSON.parse(again.data), [['c', 1], ['b']]);
  });

  it('releases everything when the page disconnects', async () => {
    const { feed } = feedOf();
    const client = await serve(feed);
    assert.equal(feed.viewers, 1);
    const closed = new Promise<void>((resolve) => responses[0]!.once('close', resolve));
    client.close();
    await closed;
    assert.equal(feed.viewers, 0);
  });
});
