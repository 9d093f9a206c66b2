import assert from 'node:assert/strict';
import { KubeError } from '../../../kube/client.ts';
import { createRegistry } from '../../../runtime/metrics.ts';
import { ArgsError } from '../../../scheduler-plugin/extender/args.ts';
import type { Explainer } from '../../../scheduler-plugin/extender/explain.ts';
import { type Extender, NotNow } from '../../../scheduler-plugin/extender/extender.ts';
import { createExtenderApp, MAX_BODY_BYTES } from '../../../scheduler-plugin/http/app.ts';
import { createExtenderMetrics } from '../../../scheduler-plugin/telemetry/metrics.ts';
import { recordingLogger } from '../../support/logger.ts';
import { until } from '../../support/until.ts';
import { useServer } from '../app-fixture.ts';
import { extenderOf, podOf } from '../extender-fixture.ts';

type ExtenderApp = ReturnType<typeof createExtenderApp>;

const CALL = JSON.stringify({ Pod: podOf('4'), Nodes: null, NodeNames: ['n1'] });

describe('the answers of the extender', () => {
  const { serve, begin, ask } = useServer();
  let app: ExtenderApp;

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
    serve(app.handler);
    const counted = async () =>
      (await registry.metrics())
        .split('\n')
        .filter((line) => line.startsWith('plumbline_extender_calls_total{') || /call_seconds_count\{/.test(line))
        .map((line) => line.replace('plumbline_extender_', ''));
    return { ...logged, counted };
  };
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
  for (const [what, error, status, text, outcome] of FAILURES) {
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
        [status, text, 'keep-alive', 'text/plain; charset=utf-8'],
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
      // The scheduler repeats calls that are refused: one line for each kind of call.
      assert.equal(lines.length, error instanceof NotNow ? 3 : 4);
    });
  }

  it('refuse a body that is too large, by its length, and close the connection', async () => {
    const { counted } = use();
    for (const path of ['/prioritize', '/explain']) {
      const { status, headers, text } = await ask(path, ' '.repeat(MAX_BODY_BYTES + 1));
      assert.deepEqual([status, headers.connection], [413, 'close']);
      assert.match(text, /larger than/);
    }
    assert.deepEqual(await counted(), [
      'calls_total{verb="prioritize",outcome="malformed"} 1',
      'calls_total{verb="explain",outcome="malformed"} 1',
    ]);
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
