import assert from 'node:assert/strict';
import { type IncomingHttpHeaders, type RequestListener, request } from 'node:http';
import { KubeError } from '../../../kube/client.ts';
import { createHttpServer, type HttpServer } from '../../../runtime/http-server.ts';
import { createRegistry } from '../../../runtime/metrics.ts';
import { ArgsError } from '../../../scheduler-plugin/extender/args.ts';
import type { Explainer } from '../../../scheduler-plugin/extender/explain.ts';
import { type Extender, NotNow } from '../../../scheduler-plugin/extender/extender.ts';
import { createExtenderApp, MAX_BODY_BYTES } from '../../../scheduler-plugin/http/app.ts';
import { createExtenderMetrics } from '../../../scheduler-plugin/telemetry/metrics.ts';
import { recordingLogger } from '../../support/logger.ts';
import { until } from '../../support/until.ts';
import { extenderOf, podOf } from '../extender-fixture.ts';

type ExtenderApp = ReturnType<typeof createExtenderApp>;

const CALL = JSON.stringify({ Pod: podOf('4'), Nodes: null, NodeNames: ['n1'] });

describe('the answers of the extender', () => {
  let server: HttpServer;
  let app: ExtenderApp;
  before(async () => {
    const handler: RequestListener = (call, response) => app.handler(call, response);
    server = createHttpServer({ handler, host: '127.0.0.1', port: 0, log: recordingLogger().log });
    await server.start();
  });
  after(() => server.stop(0));

  const use = (more: Partial<Extender> = {}, explainer: Partial<Explainer> = {}, called = async () => undefined) => {
    const { extender } = extenderOf();
    const registry = createRegistry();
    const logged = recordingLogger();
    app = createExtenderApp({
      extender: Object.assign(extender, more),
      explainer: { ofPod: async () => ({}), ofBody: async () => ({}), ...explainer },
      called,
      unpredictable: 'refuse',
      metrics: createExtenderMetrics(registry),
      log: logged.log,
    });
    const counted = async () =>
      (await registry.metrics())
        .split('\n')
        .filter((line) => line.startsWith('plumbline_extender_calls_total{') || /call_seconds_count\{/.test(line))
        .map((line) => line.replace('plumbline_extender_', ''));
    return { ...logged, counted };
  };
  const begin = (path: string, length: number, method = 'POST') => {
    const to = { host: '127.0.0.1', port: server.port, path, method, agent: false };
    const call = request({ ...to, headers: { 'content-length': length, connection: 'keep-alive' } });
    const answer = new Promise<{ status: number | undefined; headers: IncomingHttpHeaders; text: string }>(
      (resolve, reject) => {
        call.on('error', reject).on('response', (response) => {
          let text = '';
          response.on('data', (chunk: Buffer) => {
            text += chunk.toString();
          });
          response.on('end', () => resolve({ status: response.statusCode, headers: response.headers, text }));
        });
      },
    );
    return { call, answer };
  };
  const ask = (path: string, body = '', method = 'POST') => {
    const { call, answer } = begin(path, Buffer.byteLength(body), method);
    call.end(body);
    return answer;
  };

  const FAILURES: readonly [string, Error, number, string, string, string][] = [
    ['a broken protocol', new ArgsError('no uid'), 400, 'plumbline: no uid\n', 'malformed', 'keep-alive'],
    ['no verdict', new NotNow('not synced'), 503, 'plumbline: not synced\n', 'error', 'keep-alive'],
    ['a failing API server', new KubeError(500, 'x', 'GET: 500'), 502, 'plumbline: GET: 500\n', 'error', 'keep-alive'],
    [
      'a mistake of the program',
      new TypeError('secret'),
      500,
      'plumbline: the extender failed to decide; see its log\n',
      'error',
      'keep-alive',
    ],
  ];
  for (const [what, error, status, text, outcome, connection] of FAILURES) {
    it(`report ${what} with ${status}, or with 200 and the field Error for a filter call`, async () => {
      const fail = (): never => {
        throw error;
      };
      const { counted, lines } = use(
        { filter: fail, prioritize: fail },
        { ofPod: async () => fail(), ofBody: async () => fail() },
      );
      const scored = await ask('/prioritize', CALL);
      assert.deepEqual(
        [scored.status, scored.text, scored.headers.connection, scored.headers['content-type']],
        [status, text, connection, 'text/plain; charset=utf-8'],
      );
      const filtered = await ask('/filter', CALL);
      assert.deepEqual([filtered.status, filtered.headers['content-type']], [200, 'application/json']);
      assert.equal(`${(JSON.parse(filtered.text) as { Error: string }).Error}\n`, text);
      assert.equal((await ask('/explain', CALL)).status, status);
      assert.equal((await ask('/explain?pod=a/b', '', 'GET')).status, status);
      assert.deepEqual(await counted(), [
        `calls_total{verb="prioritize",outcome="${outcome}"} 1`,
        `calls_total{verb="filter",outcome="${outcome}"} 1`,
        `calls_total{verb="explain",outcome="${outcome}"} 2`,
      ]);
      const message =
        outcome === 'malformed'
          ? 'malformed extender call refused'
          : error instanceof NotNow
            ? 'extender call refused'
            : 'extender call failed';
      assert.deepEqual(
        lines.map(({ msg }) => msg),
        // The scheduler repeats calls that are refused: one line for each kind of call.
        error instanceof NotNow ? [message, message, message] : [message, message, message, message],
      );
    });
  }

  it('refuse a body that is too large, by its length, and close the connection', async () => {
    const { counted, lines } = use();
    for (const path of ['/prioritize', '/explain']) {
      const { status, headers, text } = await ask(path, ' '.repeat(MAX_BODY_BYTES + 1));
      assert.deepEqual([status, headers.connection], [413, 'close']);
      assert.match(text, /larger than/);
    }
    assert.deepEqual(await counted(), [
      'calls_total{verb="prioritize",outcome="malformed"} 1',
      'calls_total{verb="explain",outcome="malformed"} 1',
    ]);
    assert.deepEqual(
      lines.map(({ msg }) => msg),
      ['malformed extender call refused', 'malformed extender call refused'],
    );
  });

  it('are counted by verb, with their time', async () => {
    const { counted } = use();
    for (const verb of ['filter', 'prioritize', 'preempt']) {
      const { status, headers, text } = await ask(`/${verb}`, CALL);
      assert.deepEqual([status, headers['content-length']], [200, String(Buffer.byteLength(text))]);
    }
    const verbs = ['filter', 'prioritize', 'preempt'];
    assert.deepEqual(await counted(), [
      ...verbs.map((verb) => `calls_total{verb="${verb}",outcome="ok"} 1`),
      ...verbs.map((verb) => `call_seconds_count{verb="${verb}"} 1`),
    ]);
  });

  it('wait until the replica knows whether it is active', async () => {
    let know: () => void = () => undefined;
    let asked = 0;
    use({}, {}, () => {
      asked++;
      return new Promise((resolve) => {
        know = () => resolve(undefined);
      });
    });
    let answered = false;
    const answer = ask('/filter', CALL).then((it) => {
      answered = true;
      return it;
    });
    await until('the call', () => asked === 1);
    await new Promise((resolve) => setImmediate(resolve));
    assert.equal(answered, false);
    know();
    assert.match((await answer).text, /"NodeNames":\["n1"\]/);
  });

  it('consider the filter calls whose bodies are still arriving, and no other calls', async () => {
    const { extender } = extenderOf();
    const crowds: number[] = [];
    use({
      filter: (args, waiting) => {
        crowds.push(waiting);
        return extender.filter(args, waiting);
      },
    });
    let arrived = 0;
    const { handler } = app;
    app = {
      ...app,
      handler: ((call, response) => {
        arrived++;
        handler(call, response);
      }) as ExtenderApp['handler'],
    };
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

  it('repeat at most 80 characters of an unknown path', async () => {
    use();
    const { status, text } = await ask(`/${'x'.repeat(200)}`, '');
    const expected = 'expected POST /filter, /prioritize or /preempt, or GET or POST /explain';
    assert.deepEqual([status, text], [404, `POST /${'x'.repeat(79)}: ${expected}\n`]);
  });

  it('explain the pod that the query names once; otherwise the last decisions', async () => {
    const names: (string | null)[] = [];
    use({}, { ofPod: async (name) => ({ number: names.push(name) }) });
    for (const query of ['', '?pod=a/b', '?pod=a/b&pod=c/d', '?pod=', '?other=a/b']) {
      assert.equal((await ask(`/explain${query}`, '', 'GET')).status, 200);
    }
    assert.deepEqual(names, [null, 'a/b', null, '', null]);
    assert.equal((await ask('/explain', '', 'GET')).text, '{\n  "number": 6\n}\n');
  });
});
