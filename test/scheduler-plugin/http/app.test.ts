import assert from 'node:assert/strict';
import { EventEmitter, once } from 'node:events';
import { Agent, request } from 'node:http';
import { connect, type Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { mock } from 'node:test';
import { KubeError } from '../../../kube/client.ts';
import { createRegistry } from '../../../runtime/metrics.ts';
import { ArgsError } from '../../../scheduler-plugin/extender/args.ts';
import type { Explainer } from '../../../scheduler-plugin/extender/explain.ts';
import { type Extender, NotNow } from '../../../scheduler-plugin/extender/extender.ts';
import { MAX_BODY_BYTES } from '../../../scheduler-plugin/http/app.ts';
import { createExtenderMetrics } from '../../../scheduler-plugin/telemetry/metrics.ts';
import { recordingLogger } from '../../support/logger.ts';
import { until } from '../../support/until.ts';
import {
  appOf,
  type ExtenderUnderTest,
  extenderOf,
  type FilterReply,
  podOf,
  statusOf,
  useServer,
  withUid,
} from '../extender-fixture.ts';

interface Reply extends FilterReply {
  readonly Nodes: { readonly items: readonly object[] } | null;
}
const replyIn = (text: string) => JSON.parse(text) as Reply;
const args = (more: object = {}) => JSON.stringify({ Pod: podOf('4'), Nodes: null, NodeNames: ['n1'], ...more });
const CALL = args();
/** Seconds for which kube-scheduler keeps an idle connection (IdleConnTimeout of Go's transport in client-go). */
const CLIENT_KEEPS_SECONDS = 90;
describe('the extender over HTTP', () => {
  const server = useServer();
  const { serve, begin, ask } = server;
  const sockets = new Set<Socket>();

  const use = (under: ExtenderUnderTest = extenderOf(), explainer?: Partial<Explainer>, called = async () => {}) => {
    const registry = createRegistry();
    const logged = recordingLogger();
    const metrics = createExtenderMetrics(registry);
    const answered = { ofPod: async () => ({}), ofBody: async () => ({}), ...explainer };
    const { handler } = appOf(under, { metrics, log: logged.log, called, ...(explainer && { explainer: answered }) });
    sockets.clear();
    serve((call, response) => {
      sockets.add(call.socket);
      handler(call, response);
    });
    const counted = async () =>
      (await registry.metrics())
        .split('\n')
        .filter((line) => line.startsWith('plumbline_extender_calls_total{') || /call_seconds_count\{/.test(line))
        .map((line) => line.replace('plumbline_extender_', ''));
    return { ...logged, counted, handler };
  };
  const extenderWith = (more: Partial<Extender>): ExtenderUnderTest => {
    const under = extenderOf();
    return { ...under, extender: Object.assign(under.extender, more) };
  };

  it('answers in the format of the scheduler, key by key', async () => {
    use(extenderOf({ nodes: { n1: statusOf(), n2: undefined } }));
    assert.equal(
      (await ask('/filter', args({ NodeNames: ['n1', 'n2'] }))).text,
      '{"Nodes":null,"NodeNames":["n1"],"FailedNodes":{},"FailedAndUnresolvableNodes":{"n2":"node does not report its topology"},"Error":""}',
    );
    assert.match((await ask('/prioritize', CALL)).text, /^\[\{"Host":"n1","Score":\d+\}\]$/);
  });

  it('reads the names of whole Nodes if the scheduler sends them, and returns whole Nodes', async () => {
    use();
    const whole = { metadata: { name: 'n1', labels: { a: 'b' } }, spec: { podCIDR: '10.0.0.0/24' } };
    const items = [whole, { metadata: { name: 'n2' } }];
    const reply = replyIn((await ask('/filter', args({ NodeNames: null, Nodes: { items } }))).text);
    assert.deepEqual(
      [reply.NodeNames, reply.Nodes?.items, reply.FailedAndUnresolvableNodes],
      [['n1'], [whole], { n2: 'node is not known yet' }],
    );
  });

  const MALFORMED: readonly [label: string, body: string, error: RegExp][] = [
    ['malformed JSON', '{"Pod":', /not JSON/],
    ['both Nodes and NodeNames', args({ Nodes: { items: [] } }), /both Nodes and NodeNames/],
    ['a pod without uid', args({ Pod: { ...podOf('4'), metadata: { name: 'x' } } }), /uid is missing/],
    ['a body that is too large', ' '.repeat(MAX_BODY_BYTES + 1), /larger than/],
    ['names that are not strings', args({ NodeNames: [2] }), /NodeNames: expected a list of at most 20000 names/],
  ];
  for (const [label, body, error] of MALFORMED)
    it(`answers ${label} with the protocol's Error`, async () => {
      use();
      const answer = await ask('/filter', body);
      assert.equal(answer.status, 200);
      const reply = replyIn(answer.text);
      assert.match(reply.Error, error);
      const lists = [reply.Nodes, reply.NodeNames, reply.FailedNodes, reply.FailedAndUnresolvableNodes];
      assert.deepEqual(lists, [null, null, null, null], 'no node counts as passed');
    });

  const labels = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, i) => [`key-${i}`, 'x']));
  const [container] = podOf('4').spec.containers;
  const UNREADABLE: readonly [label: string, pod: object, refusal: RegExp | undefined][] = [
    ['an invalid quantity', podOf('four'), /quantity "four"/],
    ['49 containers', { ...podOf('4'), spec: { containers: Array(49).fill(container) } }, /more than 48 containers/],
    [
      'a longer annotation',
      withUid(podOf('4'), 'a', { annotations: { 'k8s.v1.cni.cncf.io/networks': 'x'.repeat(17_000) } }),
      /longer than 16384/,
    ],
    ['more labels than are kept, of which none matters', withUid(podOf('4'), 'a', { labels: labels(1030) }), undefined],
  ];
  for (const [label, pod, refusal] of UNREADABLE)
    it(`finds no node for a pod with ${label}, unless it can be read, and is asked again only after a change`, async () => {
      use();
      const reply = replyIn((await ask('/filter', args({ Pod: pod }))).text);
      assert.deepEqual([reply.Error, reply.NodeNames.length > 0], ['', refusal === undefined]);
      if (refusal !== undefined) assert.match(reply.FailedAndUnresolvableNodes?.['n1'] ?? '', refusal);
    });

  const FAILURES: readonly [string, Error, number, string, string][] = [
    ['a broken protocol', new ArgsError('no uid'), 400, 'plumbline: no uid\n', 'malformed'],
    ['no verdict', new NotNow('not synced'), 503, 'plumbline: not synced\n', 'error'],
    ['a failing API server', new KubeError(500, 'x', 'GET: 500'), 502, 'plumbline: GET: 500\n', 'error'],
    [
      'a mistake of the program',
      new TypeError('secret'),
      500,
      'plumbline: the extender failed to decide; see its log\n',
      'error',
    ],
  ];
  for (const [what, error, status, message, outcome] of FAILURES)
    it(`reports ${what} with ${status}, or with 200 and the field Error for a filter call`, async () => {
      const fail = (): never => {
        throw error;
      };
      const { counted, lines } = use(extenderWith({ filter: fail, prioritize: fail }), {
        ofPod: async () => fail(),
        ofBody: async () => fail(),
      });
      const scored = await ask('/prioritize', CALL);
      assert.deepEqual(
        [scored.status, scored.text, scored.headers.connection, scored.headers['content-type']],
        [status, message, 'keep-alive', 'text/plain; charset=utf-8'],
      );
      const filtered = await ask('/filter', CALL);
      assert.deepEqual([filtered.status, filtered.headers['content-type']], [200, 'application/json']);
      assert.equal(`${replyIn(filtered.text).Error}\n`, message);
      assert.equal((await ask('/explain', CALL)).status, status);
      assert.equal((await ask('/explain?pod=a/b', '', 'GET')).status, status);
      assert.deepEqual(await counted(), [
        `calls_total{verb="prioritize",outcome="${outcome}"} 1`,
        `calls_total{verb="filter",outcome="${outcome}"} 1`,
        `calls_total{verb="explain",outcome="${outcome}"} 2`,
      ]);
      // The scheduler repeats calls that are refused: one line for each kind of call.
      assert.equal(lines.length, error instanceof NotNow ? 3 : 4);
    });

  it('logs that refused calls are answered again, for each kind of call', async () => {
    let now = 0;
    mock.method(performance, 'now', () => now);
    let isDown = true;
    const { extender } = extenderOf();
    const unlessDown = <T>(answer: T): T => {
      if (isDown) throw new NotNow('not synced');
      return answer;
    };
    const filter = (...call: Parameters<Extender['filter']>) => unlessDown(extender.filter(...call));
    const { lines } = use(extenderWith({ filter }), { ofBody: async () => unlessDown({}) });
    const paths = ['/filter', '/explain'];
    for (const path of paths) await ask(path, CALL);
    isDown = false;
    now += 60_000;
    for (const path of paths) await ask(path, CALL);
    mock.restoreAll();
    const logged = lines.map(({ msg, verb }) => `${verb} ${msg}`);
    const refused = ['filter extender call refused', 'explain extender call refused'];
    assert.deepEqual(logged, [...refused, 'filter recovered', 'explain recovered']);
  });

  it('answers with Error before the caches have synced, and if the replica is not active after the work', async () => {
    for (const verb of ['filter', 'prioritize', 'preempt']) {
      use(extenderOf({ missing: 'not synced yet: pods' }));
      assert.match((await ask(`/${verb}`, CALL)).text, /not synced yet: pods/);
      // As after a pause of the process.
      let checks = 0;
      use(extenderOf({ active: () => checks++ === 0 }));
      const answer = await ask(`/${verb}`, CALL);
      assert.equal(checks, 2, verb);
      assert.equal(answer.status, verb === 'filter' ? 200 : 503);
      assert.match(answer.text, /another kube-scheduler has bound are not read yet/);
      assert.doesNotMatch(answer.text, /n1/);
    }
  });

  it('refuses a body that is too large by its length, and closes the connection', async () => {
    const { counted } = use();
    const answer = await ask('/prioritize', ' '.repeat(MAX_BODY_BYTES + 1));
    assert.deepEqual([answer.status, answer.headers.connection], [413, 'close']);
    assert.deepEqual(await counted(), ['calls_total{verb="prioritize",outcome="malformed"} 1']);
  });

  it('counts calls by verb, with their time', async () => {
    const { counted } = use();
    const verbs = ['filter', 'prioritize', 'preempt'];
    for (const verb of verbs) {
      const answer = await ask(`/${verb}`, CALL);
      assert.deepEqual(
        [answer.status, answer.headers['content-length']],
        [200, String(Buffer.byteLength(answer.text))],
      );
    }
    assert.deepEqual(await counted(), [
      ...verbs.map((verb) => `calls_total{verb="${verb}",outcome="ok"} 1`),
      ...verbs.map((verb) => `call_seconds_count{verb="${verb}"} 1`),
    ]);
  });

  it('waits until the replica knows whether it is active', async () => {
    const steps: string[] = [];
    const asking = new EventEmitter();
    use(extenderOf(), {}, async () => {
      steps.push('called');
      await once(asking, 'decided');
    });
    const answer = ask('/filter', CALL).finally(() => steps.push('answered'));
    await until('the call', () => steps.length > 0);
    await new Promise((resolve) => setImmediate(resolve));
    assert.deepEqual(steps, ['called']);
    asking.emit('decided');
    assert.match((await answer).text, /"NodeNames":\["n1"\]/);
  });

  it('considers the filter calls whose bodies are still arriving, and no other calls', async () => {
    const { extender } = extenderOf();
    const crowds: number[] = [];
    const filter: Extender['filter'] = (call, waiting) => {
      crowds.push(waiting);
      return extender.filter(call, waiting);
    };
    const { handler } = use(extenderWith({ filter }));
    let arrived = 0;
    serve((call, response) => {
      arrived++;
      handler(call, response);
    });
    const slow = [begin('/filter', CALL.length), begin('/filter', CALL.length), begin('/prioritize', CALL.length)];
    for (const { call } of slow) call.write(CALL.slice(0, 10));
    await until('their heads', () => arrived === 3);
    await ask('/filter', CALL);
    for (const { call, answer } of slow) {
      call.end(CALL.slice(10));
      await answer;
    }
    await ask('/filter', CALL);
    assert.deepEqual(crowds, [2, 1, 0, 0]);
  });

  it('explains the pod that the query names once; otherwise the last 1,000 decisions', async () => {
    const names: (string | null)[] = [];
    use(extenderOf(), { ofPod: async (name) => ({ number: names.push(name) }) });
    for (const query of ['', '?pod=a/b', '?pod=a/b&pod=c/d', '?pod=', '?other=a/b'])
      assert.equal((await ask(`/explain${query}`, '', 'GET')).status, 200);
    assert.deepEqual(names, [null, 'a/b', null, '', null]);
    assert.equal((await ask('/explain', '', 'GET')).text, '{\n  "number": 6\n}\n');
    const under = extenderOf();
    use(under);
    for (let i = 0; i < 1005; i++) under.filter(withUid(podOf('4'), `p${i}`));
    const { decisions } = JSON.parse((await ask('/explain', '', 'GET')).text) as { decisions: { pod: string }[] };
    const ends = [decisions.length, decisions[0]?.pod, decisions.at(-1)?.pod];
    assert.deepEqual(ends, [1000, 'default/p5', 'default/p1004']);
  });

  for (const [what, url, answer] of [
    ['a URL that cannot be parsed gets no answer', 'http://[x', /^$/],
    ['an absolute URL with an invalid port is answered', 'http://x:99999/explain?pod=n/p', /^HTTP\/1\.1 [24]/],
  ] as const)
    it(`${what}, and the connection ends`, async () => {
      use();
      const socket = connect({ host: '127.0.0.1', port: server.port });
      socket.write(`GET ${url} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n`);
      assert.match(await text(socket), answer);
    });

  it('lets the scheduler close idle connections, because the idle timeout of the server is longer', async () => {
    use();
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    for (let i = 0; i < 2; i++) {
      await new Promise<void>((resolve, reject) => {
        const headers = { 'content-length': Buffer.byteLength(CALL) };
        const to = { host: '127.0.0.1', port: server.port, path: '/filter', method: 'POST', agent, headers };
        request(to, (response) => response.resume().on('end', resolve))
          .on('error', reject)
          .end(CALL);
      });
      await until('the connection to be idle', () => [...sockets].some(({ timeout }) => timeout !== undefined));
      const timeouts = [...sockets].map(({ timeout }) => (timeout ?? 0) / 1000);
      assert.equal(timeouts.length, 1);
      assert.ok(timeouts[0]! > CLIENT_KEEPS_SECONDS, `the server closes an idle connection after ${timeouts[0]} s`);
    }
    agent.destroy();
  });
});
