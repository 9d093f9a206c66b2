import assert from 'node:assert/strict';
import { request } from 'node:http';
import { createHttpServer, type HttpServer } from '../../runtime/http-server.ts';
import { createRegistry } from '../../runtime/metrics.ts';
import { createExtenderApp } from '../../scheduler-plugin/app.ts';
import type { Extender } from '../../scheduler-plugin/extender.ts';
import { createExtenderMetrics } from '../../scheduler-plugin/metrics.ts';
import { silent } from '../support/logger.ts';
import { extenderOf, podOf, statusOf } from './extender-fixture.ts';

interface FilterReply {
  NodeNames: string[] | null;
  FailedNodes: Record<string, string> | null;
  FailedAndUnresolvableNodes: Record<string, string> | null;
  Error: string;
}

describe('the extender over HTTP', () => {
  let server: HttpServer;
  let extender: Extender = extenderOf();

  before(async () => {
    const delegate: Extender = {
      filter: (args) => extender.filter(args),
      prioritize: (args) => extender.prioritize(args),
    };
    const metrics = createExtenderMetrics(createRegistry());
    const handler = createExtenderApp({ extender: delegate, metrics, log: silent });
    server = createHttpServer({ handler, host: '127.0.0.1', port: 0, log: silent });
    await server.start();
  });
  after(() => server.stop(0));
  beforeEach(() => {
    extender = extenderOf();
  });

  /** node:http, so that headers are seen as sent. */
  const post = (path: string, body: string) =>
    new Promise<{ status: number; length: string | undefined; text: string }>((resolve, reject) => {
      const call = request({ host: '127.0.0.1', port: server.port, path, method: 'POST' }, (response) => {
        const chunks: Buffer[] = [];
        response.on('data', (chunk: Buffer) => chunks.push(chunk));
        response.on('end', () =>
          resolve({
            status: response.statusCode ?? 0,
            length: response.headers['content-length'],
            text: Buffer.concat(chunks).toString(),
          }),
        );
      });
      call.on('error', reject);
      call.end(body);
    });
  const args = (more: object = {}) =>
    JSON.stringify({ Pod: podOf('4'), Nodes: null, NodeNames: ['n1', 'n2'], ...more });

  it('speaks the wire of the scheduler, key by key', async () => {
    extender = extenderOf({ nodes: { n1: statusOf() } });
    const { status, length, text } = await post('/filter', args());
    assert.equal(status, 200);
    assert.equal(length, String(Buffer.byteLength(text)));
    assert.equal(
      text,
      '{"Nodes":null,"NodeNames":["n1"],"FailedNodes":{},"FailedAndUnresolvableNodes":{"n2":"node does not report its topology"},"Error":""}',
    );
    assert.match((await post('/prioritize', args({ NodeNames: ['n1'] }))).text, /^\[\{"Host":"n1","Score":\d+\}\]$/);
  });

  it('takes 5,000 node names', async () => {
    const NodeNames = Array.from({ length: 5000 }, (_, i) => `worker-${i}.east.example.internal`);
    const { text } = await post('/filter', args({ NodeNames }));
    assert.equal(Object.keys((JSON.parse(text) as FilterReply).FailedAndUnresolvableNodes ?? {}).length, 5000);
  });

  it('reads the names of whole Nodes where the scheduler sends those', async () => {
    const { text } = await post('/filter', args({ NodeNames: null, Nodes: { items: [{ metadata: { name: 'n1' } }] } }));
    assert.deepEqual((JSON.parse(text) as FilterReply).NodeNames, ['n1']);
  });

  const malformed: { name: string; body: string; error: RegExp }[] = [
    { name: 'malformed JSON', body: '{"Pod":', error: /not JSON/ },
    { name: 'an empty body', body: '', error: /empty/ },
    { name: 'both Nodes and NodeNames', body: args({ Nodes: { items: [] } }), error: /both Nodes and NodeNames/ },
    { name: 'neither', body: args({ NodeNames: null }), error: /neither NodeNames nor Nodes/ },
    {
      name: 'a pod without uid',
      body: args({ Pod: { ...podOf('4'), metadata: { name: 'x' } } }),
      error: /uid is missing/,
    },
    { name: 'no pod', body: args({ Pod: null }), error: /Pod/ },
    { name: 'a quantity that is none', body: args({ Pod: podOf('four') }), error: /quantity "four"/ },
    { name: 'a body of 10 MiB', body: ' '.repeat(10 * 1024 * 1024), error: /larger than/ },
  ];
  for (const { name, body, error } of malformed) {
    it(`answers ${name} with the protocol's Error`, async () => {
      const { status, text } = await post('/filter', body);
      assert.equal(status, 200);
      const reply = JSON.parse(text) as FilterReply;
      assert.match(reply.Error, error);
      assert.equal(reply.NodeNames, null);
    });
  }

  it('answers with Error before the caches have synced, never with all nodes', async () => {
    extender = extenderOf({ missing: 'not synced yet: pods' });
    const reply = JSON.parse((await post('/filter', args())).text) as FilterReply;
    assert.match(reply.Error, /not synced yet: pods/);
    assert.equal(reply.NodeNames, null);
    assert.equal((await post('/prioritize', args())).status, 503);
  });

  it('answers an internal fault with Error, never with all nodes, and tells no detail', async () => {
    extender = {
      filter: () => {
        throw new TypeError('a secret detail');
      },
      prioritize: () => [],
    };
    const { status, text } = await post('/filter', args());
    assert.equal(status, 200);
    assert.match((JSON.parse(text) as FilterReply).Error, /failed to decide/);
    assert.doesNotMatch(text, /secret/);
  });
});
