import assert from 'node:assert/strict';
import { type RequestListener, request } from 'node:http';
import { createHttpServer, type HttpServer } from '../../runtime/http-server.ts';
import { createRegistry } from '../../runtime/metrics.ts';
import { createExtenderApp, type ExtenderApp } from '../../scheduler-plugin/app.ts';
import { createExplainer } from '../../scheduler-plugin/explain.ts';
import { createExtenderMetrics } from '../../scheduler-plugin/metrics.ts';
import { silent } from '../support/logger.ts';
import { type ExtenderUnderTest, extenderOf, podOf, statusOf } from './extender-fixture.ts';

interface FilterReply {
  NodeNames: string[] | null;
  FailedNodes: Record<string, string> | null;
  FailedAndUnresolvableNodes: Record<string, string> | null;
  Error: string;
  Nodes: { items: { metadata: { name: string } }[] } | null;
}

function appOf({ extender, decisions }: ExtenderUnderTest): ExtenderApp {
  const explainer = createExplainer({
    extender,
    decisions,
    client: { get: async () => podOf('4') },
    isActive: () => true,
  });
  const metrics = createExtenderMetrics(createRegistry());
  return createExtenderApp({ extender, explainer, unpredictable: 'refuse', metrics, log: silent });
}

describe('the extender over HTTP', () => {
  let server: HttpServer;
  let app: ExtenderApp;
  const use = (under: ExtenderUnderTest) => {
    app = appOf(under);
  };

  before(async () => {
    const handler: RequestListener = (request, response) => app.handler(request, response);
    server = createHttpServer({ handler, host: '127.0.0.1', port: 0, log: silent });
    await server.start();
  });
  after(() => server.stop(0));
  beforeEach(() => {
    use(extenderOf());
  });

  /** node:http, so that headers are seen as sent. */
  const post = (path: string, body: string) =>
    new Promise<{ status: number; length: string | undefined; text: string }>((resolve, reject) => {
      const call = request({ host: '127.0.0.1', port: server.port, path, method: 'POST', agent: false }, (response) => {
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
    use(extenderOf({ nodes: { n1: statusOf(), n2: undefined } }));
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
    const whole = { metadata: { name: 'n1', labels: { a: 'b' } }, spec: { podCIDR: '10.0.0.0/24' } };
    const items = [whole, { metadata: { name: 'n2' } }];
    const { text } = await post('/filter', args({ NodeNames: null, Nodes: { items } }));
    const reply = JSON.parse(text) as FilterReply;
    assert.deepEqual(reply.NodeNames, ['n1']);
    assert.deepEqual(reply.Nodes?.items, [whole], 'whole Nodes are sent back whole');
    assert.deepEqual(reply.FailedAndUnresolvableNodes, { n2: 'node is not known yet' });
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
    { name: 'a body of 50 MiB', body: ' '.repeat(50 * 1024 * 1024), error: /larger than/ },
    { name: 'names that are no strings', body: args({ NodeNames: ['n1', 2] }), error: /no array of strings/ },
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
    use(extenderOf({ missing: 'not synced yet: pods' }));
    const reply = JSON.parse((await post('/filter', args())).text) as FilterReply;
    assert.match(reply.Error, /not synced yet: pods/);
    assert.equal(reply.NodeNames, null);
    assert.equal((await post('/prioritize', args())).status, 503);
  });

  it('answers an internal fault with Error, never with all nodes, and tells no detail', async () => {
    const under = extenderOf();
    const broken = (): never => {
      throw new TypeError('a secret detail');
    };
    use({ ...under, extender: { ...under.extender, filter: broken } });
    const { status, text } = await post('/filter', args());
    assert.equal(status, 200);
    assert.match((JSON.parse(text) as FilterReply).Error, /failed to decide/);
    assert.doesNotMatch(text, /secret/);
  });
});
