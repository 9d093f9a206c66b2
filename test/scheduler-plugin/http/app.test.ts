import assert from 'node:assert/strict';
import { appOf, useServer } from '../app-fixture.ts';
import { type ExtenderUnderTest, extenderOf, podOf, statusOf, withUid } from '../extender-fixture.ts';

interface FilterReply {
  NodeNames: string[] | null;
  FailedNodes: Record<string, string> | null;
  FailedAndUnresolvableNodes: Record<string, string> | null;
  Error: string;
  Nodes: { items: { metadata: { name: string } }[] } | null;
}

describe('the extender over HTTP', () => {
  const { serve, ask } = useServer();
  const use = (under: ExtenderUnderTest) => serve(appOf(under).handler);
  beforeEach(() => use(extenderOf()));

  const args = (more: object = {}) =>
    JSON.stringify({ Pod: podOf('4'), Nodes: null, NodeNames: ['n1', 'n2'], ...more });

  it('answers in the format of the scheduler, key by key', async () => {
    use(extenderOf({ nodes: { n1: statusOf(), n2: undefined } }));
    const { status, headers, text } = await ask('/filter', args());
    assert.equal(status, 200);
    assert.equal(headers['content-length'], String(Buffer.byteLength(text)));
    assert.equal(
      text,
      '{"Nodes":null,"NodeNames":["n1"],"FailedNodes":{},"FailedAndUnresolvableNodes":{"n2":"node does not report its topology"},"Error":""}',
    );
    assert.match((await ask('/prioritize', args({ NodeNames: ['n1'] }))).text, /^\[\{"Host":"n1","Score":\d+\}\]$/);
  });

  it('reads the names of whole Nodes if the scheduler sends them', async () => {
    const whole = { metadata: { name: 'n1', labels: { a: 'b' } }, spec: { podCIDR: '10.0.0.0/24' } };
    const items = [whole, { metadata: { name: 'n2' } }];
    const { text } = await ask('/filter', args({ NodeNames: null, Nodes: { items } }));
    const reply = JSON.parse(text) as FilterReply;
    assert.deepEqual(reply.NodeNames, ['n1']);
    assert.deepEqual(reply.Nodes?.items, [whole], 'whole Nodes are returned whole');
    assert.deepEqual(reply.FailedAndUnresolvableNodes, { n2: 'node is not known yet' });
  });

  const malformed: { name: string; body: string; error: RegExp }[] = [
    { name: 'malformed JSON', body: '{"Pod":', error: /not JSON/ },
    { name: 'both Nodes and NodeNames', body: args({ Nodes: { items: [] } }), error: /both Nodes and NodeNames/ },
    {
      name: 'a pod without uid',
      body: args({ Pod: { ...podOf('4'), metadata: { name: 'x' } } }),
      error: /uid is missing/,
    },
    { name: 'an invalid quantity', body: args({ Pod: podOf('four') }), error: /quantity "four"/ },
    { name: 'a body of 50 MiB', body: ' '.repeat(50 * 1024 * 1024), error: /larger than/ },
    {
      name: 'names that are not strings',
      body: args({ NodeNames: ['n1', 2] }),
      error: /NodeNames: expected a list of at most 20000 names/,
    },
  ];
  for (const { name, body, error } of malformed) {
    it(`answers ${name} with the protocol's Error`, async () => {
      const { status, text } = await ask('/filter', body);
      assert.equal(status, 200);
      const reply = JSON.parse(text) as FilterReply;
      assert.match(reply.Error, error);
      const lists = [reply.Nodes, reply.NodeNames, reply.FailedNodes, reply.FailedAndUnresolvableNodes];
      assert.deepEqual(lists, [null, null, null, null], 'no node counts as passed');
    });
  }

  it('answers with Error before the caches have synced, never with all nodes', async () => {
    use(extenderOf({ missing: 'not synced yet: pods' }));
    const reply = JSON.parse((await ask('/filter', args())).text) as FilterReply;
    assert.match(reply.Error, /not synced yet: pods/);
    assert.equal(reply.NodeNames, null);
    assert.equal((await ask('/prioritize', args())).status, 503);
  });

  it('answers with Error if the replica is no longer active after the work, as after a pause of the process', async () => {
    for (const verb of ['filter', 'prioritize', 'preempt']) {
      let checks = 0;
      use(extenderOf({ active: () => checks++ === 0 }));
      const { status, text } = await ask(`/${verb}`, args({ NodeNames: ['n1'] }));
      assert.equal(checks, 2, verb);
      assert.equal(status, verb === 'filter' ? 200 : 503);
      assert.match(text, /another kube-scheduler has bound are not read yet/);
      assert.doesNotMatch(text, /n1/);
    }
  });

  it('explains the last 1,000 decisions', async () => {
    const under = extenderOf();
    use(under);
    for (let i = 0; i < 1005; i++) under.filter(withUid(podOf('4'), `p${i}`));
    const { decisions } = JSON.parse((await ask('/explain', '', 'GET')).text) as { decisions: { pod: string }[] };
    const ends = [decisions.length, decisions[0]?.pod, decisions.at(-1)?.pod];
    assert.deepEqual(ends, [1000, 'default/p5', 'default/p1004']);
  });
});
