import assert from 'node:assert/strict';
import { mock } from 'node:test';
import * as z from 'zod';
import { KubeError } from '../../kube/client.ts';
import { type Change, cacheProblem, createReflector } from '../../kube/reflector.ts';
import { unreadableGauge } from '../../runtime/metrics.ts';
import { TenantBudget } from '../../runtime/tenant-budget.ts';
import { recordingLogger } from '../support/logger.ts';
import { createApi, type ListCall, settle } from './scripted-api-stand-in.ts';

const PATH = '/apis/example.org/v1/things';
const thing = (name: string, color = 'red', resourceVersion = '1') => ({ metadata: { name, resourceVersion }, color });
const schema = z.object({ metadata: z.object({ name: z.string() }), color: z.string() });
const missing = () => new KubeError(404, 'NotFound', 'the kind is not installed');
const expired = () => new KubeError(410, 'Expired', 'too old resource version');
const broken = () => new KubeError(500, 'InternalError', 'etcd has no leader');

describe('the rules of a reflector', () => {
  let second: number;
  let stop: AbortController;
  /** The answer to the next list: objects, or an error. */
  let listed: readonly object[] | null | Error;
  /** The answers to the next watches, where they are refused. */
  let refusals: Error[];
  let lists: ListCall['query'][];
  let watches: ListCall['query'][];
  let changes: Change<string>[];
  let lines: Record<string, unknown>[];

  beforeEach(() => {
    mock.timers.enable({ apis: ['setTimeout'] });
    second = 0;
    stop = new AbortController();
    listed = [];
    refusals = [];
    lists = [];
    watches = [];
    changes = [];
  });
  afterEach(async () => {
    stop.abort();
    await settle();
    mock.timers.reset();
  });

  const api = createApi(
    ({ query }) => {
      lists.push(query);
      if (listed instanceof Error) throw listed;
      return { items: listed, resourceVersion: `list-${lists.length}` };
    },
    ({ query }) => {
      const refusal = refusals.shift();
      if (refusal !== undefined) throw refusal;
      watches.push(query);
    },
  );

  const start = async (more: Partial<Parameters<typeof createReflector<typeof schema, string>>[0]> = {}) => {
    const recording = recordingLogger();
    ({ lines } = recording);
    const reflector = createReflector({
      client: api.client,
      path: PATH,
      schema,
      project: ({ color }) => color,
      onChange: (change) => changes.push(change),
      log: recording.log,
      nowSeconds: () => second,
      ...more,
    });
    const running = reflector.run(stop.signal);
    await settle();
    return { reflector, running };
  };
  const pass = async (seconds: number) => {
    second += seconds;
    mock.timers.tick(seconds * 1000);
    await settle();
  };
  const send = async (type: string, object: object) => {
    api.push(PATH, type, object);
    await settle();
  };
  /** Ends the last watch. */
  const end = async () => {
    api.end(PATH);
    await settle();
  };
  const unreadable = async () =>
    (await unreadableGauge.get()).values.find(({ labels }) => labels.kind === 'things')?.value;
  const warnings = () => lines.filter(({ level }) => Number(level) >= 40);

  it('lists pages of 500 objects and watches, both with the selectors', async () => {
    await start({ query: { labelSelector: 'a=b', fieldSelector: 'spec.nodeName=n1' } });
    const selectors = { labelSelector: 'a=b', fieldSelector: 'spec.nodeName=n1' };
    assert.deepEqual(lists, [{ ...selectors, limit: 500, continue: undefined }]);
    const { timeoutSeconds: _, ...query } = watches[0] ?? {};
    assert.deepEqual(query, { ...selectors, resourceVersion: 'list-1', allowWatchBookmarks: true });
  });

  it('treats a list without items, as Go writes it, as empty', async () => {
    listed = null;
    const { reflector } = await start();
    assert.ok(reflector.synced);
    assert.deepEqual([[...reflector.items], warnings()], [[], []]);
  });

  it('reports each change with the state before it, and no deletion of an unknown object', async () => {
    listed = [thing('a')];
    await start();
    await send('MODIFIED', thing('a', 'blue', '2'));
    await send('DELETED', thing('a', 'blue', '3'));
    await send('DELETED', thing('unknown', 'blue', '4'));
    assert.deepEqual(changes, [
      { key: 'a', before: undefined, after: 'red' },
      { key: 'a', before: 'red', after: 'blue' },
      { key: 'a', before: 'blue', after: undefined },
    ]);
    assert.deepEqual(warnings(), [], 'a deleted object needs no shape');
  });

  it('counts an object of an unexpected shape as deleted, in a metric, and logs one line without its texts', async () => {
    listed = [thing('a')];
    const wide = schema.extend({ labels: z.record(z.string(), z.boolean()).optional() });
    const { reflector } = await start({ schema: wide });
    const labels = { '\u001b]0;\ud800': 'x', ['k'.repeat(1e6)]: 'x', plain: 'x' };
    await send('MODIFIED', { ...thing('a', 'blue', '2'), labels });
    await send('MODIFIED', { ...thing('a', 'blue', '3'), labels });
    assert.equal(reflector.items.size, 0);
    assert.deepEqual(changes.at(-1), { key: 'a', before: 'red', after: undefined });
    const expected = 'expected boolean, received string';
    const [{ msg, object, issues } = {}, ...others] = warnings();
    assert.deepEqual([msg, object, others], ['object ignored: it cannot be read', 'a', []]);
    assert.equal(issues, `labels.*: ${expected}; labels.*: ${expected}; labels.plain: ${expected}`);
    assert.equal(await unreadable(), 1);
    await send('MODIFIED', thing('a', 'green', '4'));
    assert.equal(reflector.items.get('a'), 'green');
    assert.equal(await unreadable(), 0);
  });

  it('ignores what exceeds the budget of its namespace, and lists again once others have gone', async () => {
    const inNamespace = (namespace: string, name: string, color: string) => {
      return { metadata: { namespace, name, resourceVersion: '2' }, color };
    };
    const [big, small] = ['x'.repeat(1000), 'red'];
    listed = [...['a', 'b', 'c'].map((name) => inNamespace('greedy', name, big)), inNamespace('other', 'a', small)];
    const { reflector } = await start({ budget: new TenantBudget(6000) });
    const keys = () => [...reflector.items.keys()];
    assert.deepEqual(keys(), ['greedy/a', 'other/a']);
    assert.deepEqual([warnings().length, await unreadable()], [2, 2]);
    second += 60;
    await send('BOOKMARK', thing(''));
    assert.equal(lists.length, 1, 'nothing has gone');
    listed = listed.slice(1);
    await send('DELETED', inNamespace('greedy', 'a', big));
    await send('BOOKMARK', thing(''));
    assert.deepEqual([keys(), lists.length], [['other/a', 'greedy/b'], 2]);
    assert.equal(await unreadable(), 1);
    await send('MODIFIED', inNamespace('greedy', 'b', 'y'.repeat(5000)));
    assert.equal(reflector.items.get('greedy/b'), big, 'what grows too large keeps its place and its last form');
  });

  it('ignores an event without metadata, and continues the watch', async () => {
    const { reflector } = await start();
    await send('ADDED', { color: 'red' });
    await send('ADDED', thing('a'));
    assert.deepEqual([...reflector.items], [['a', 'red']]);
    assert.deepEqual([warnings().map(({ msg }) => msg), watches.length], [['object ignored: it cannot be read'], 1]);
  });

  it('keeps an object on which the listener fails, logs the error, and announces its deletion', async () => {
    listed = [thing('a')];
    const { reflector } = await start({
      onChange: (change) => {
        if (change.after === 'blue') throw new RangeError('no such color');
        changes.push(change);
      },
    });
    await send('MODIFIED', thing('a', 'blue', '2'));
    assert.equal(reflector.items.get('a'), 'blue');
    const logged = warnings().map(({ msg, object }) => `${msg}: ${object}`);
    assert.deepEqual(logged, ['processing an object failed: a']);
    await send('DELETED', thing('a', 'blue', '3'));
    assert.deepEqual(changes.at(-1), { key: 'a', before: 'blue', after: undefined });
  });

  for (const [what, whenUnreadable, kept] of [
    ['is absent', undefined, undefined],
    ['has its last form', (_: unknown, before: string | undefined) => before, 'red'],
    ['has its minimal form', (object: unknown) => (object as { key: string }).key, 'raw'],
  ] as const) {
    it(`tells the listener that an object ${what} which becomes unreadable or fails to be projected`, async () => {
      listed = [thing('a'), thing('b')];
      const project = ({ color }: { color: string }) => {
        if (color === 'blue') throw new RangeError('no such color');
        return color;
      };
      const { reflector } = await start({ project, ...(whenUnreadable && { whenUnreadable }) });
      await send('MODIFIED', { metadata: { name: 'a', resourceVersion: '2' }, key: 'raw' });
      await send('MODIFIED', { ...thing('b', 'blue', '3'), key: 'raw' });
      const expected = ['a', 'b'].map((key) => ({ key, before: 'red', after: kept }));
      assert.deepEqual(changes.slice(-2), expected);
      assert.deepEqual([reflector.items.get('a'), await unreadable()], [kept, 2]);
    });
  }

  it('lists again after a line of the watch that cannot be read, and skips a listed object without a name', async () => {
    await start();
    listed = [thing('a'), { metadata: { name: 7 } }];
    api.write(PATH, '{"type":"ADDED","object":{"metadata":{"name":7}}}\n');
    await settle();
    await pass(0.5);
    assert.deepEqual([lists.length, watches.at(-1)?.['resourceVersion']], [2, 'list-2']);
    assert.deepEqual(changes, [{ key: 'a', before: undefined, after: 'red' }]);
  });

  it('resumes from the last version that an event named', async () => {
    const { reflector } = await start();
    await send('ADDED', thing('a', 'red', '7'));
    await send('BOOKMARK', {});
    await end();
    assert.equal(watches[1]?.['resourceVersion'], '7');
    assert.deepEqual([lists.length, [...reflector.items.keys()], warnings()], [1, ['a'], []]);
  });

  for (const [random, seconds] of [
    [0, 290],
    [0.999_999, 435],
  ] as const) {
    it(`requests a watch of ${seconds} s with a random part of ${random}`, async () => {
      const { mock: fixed } = mock.method(Math, 'random', () => random);
      await start();
      fixed.restore();
      assert.equal(watches[0]?.['timeoutSeconds'], seconds);
    });
  }

  describe('without news', () => {
    const passSeconds = async (seconds: number, each: () => void = () => undefined) => {
      for (let i = 0; i < seconds; i++) {
        each();
        await pass(1);
      }
    };

    for (const [what, each] of [
      ['brings nothing', () => undefined],
      ['brings bytes but no complete event', () => api.write(PATH, ' ')],
    ] as const) {
      it(`lists again after 120 s in which the watch ${what}`, async () => {
        await start();
        await send('ADDED', thing('a', 'red', '7'));
        await passSeconds(119, each);
        assert.equal(watches.length, 1);
        await passSeconds(1);
        assert.deepEqual([watches.length, watches[1]?.['resourceVersion'], lists.length], [2, 'list-2', 2]);
        assert.deepEqual(warnings(), []);
      });
    }

    it('lists again if a watch outlives its timeout by 30 s, whatever it brings', async () => {
      await start();
      const ends = Number(watches[0]?.['timeoutSeconds']) + 30;
      await passSeconds(ends - 1, () => api.push(PATH, 'BOOKMARK', { metadata: { resourceVersion: '8' } }));
      assert.equal(watches.length, 1);
      await passSeconds(1);
      assert.deepEqual([watches.length, watches[1]?.['resourceVersion']], [2, 'list-2']);
    });
  });

  it('has a problem before its first list, and after 150 s without a list, an event or a bookmark', async () => {
    listed = broken();
    const { reflector } = await start();
    const problem = () => cacheProblem({ things: reflector, fresh: { synced: true, lastHeard: second } }, second);
    assert.equal(problem(), 'not synced yet: things');
    listed = [];
    await pass(1);
    assert.equal(problem(), undefined);
    listed = broken();
    second += 150;
    assert.equal(problem(), undefined);
    second += 1;
    assert.equal(problem(), 'no event or bookmark from the API server: things (2 min)');
    await send('BOOKMARK', { metadata: { resourceVersion: '8' } });
    assert.equal(problem(), undefined);
  });

  it('logs the text of an ERROR event, and resumes the watch', async () => {
    await start();
    await send('ERROR', { code: 500, message: 'no leader' });
    assert.equal(warnings()[0]?.['reason'], `watch ${PATH}: no leader`);
    await pass(0.5);
    assert.deepEqual([watches.length, lists.length], [2, 1]);
  });

  it('keeps the time of the last event', async () => {
    const { reflector } = await start();
    assert.equal(reflector.lastHeard, 0);
    await pass(5);
    await send('ADDED', thing('a', 'red', '3'));
    assert.equal(reflector.lastHeard, 5);
    await end();
    await pass(1);
    await send('ADDED', thing('b', 'red', '4'));
    assert.equal(reflector.lastHeard, 5, 'the first events of a watch may be old');
    await pass(1);
    await send('ADDED', thing('c', 'red', '5'));
    assert.equal(reflector.lastHeard, 7);
  });

  it('lists again without a wait or a warning if the version of the watch has expired', async () => {
    listed = [thing('a'), thing('b')];
    const { reflector } = await start();
    listed = [thing('b', 'blue')];
    await pass(1);
    await send('ERROR', { code: 410 });
    assert.equal(lists.length, 2);
    assert.deepEqual([[...reflector.items], warnings()], [[['b', 'blue']], []]);
    assert.ok(changes.some(({ key, before, after }) => key === 'a' && before === 'red' && after === undefined));
    assert.equal(watches.at(-1)?.['resourceVersion'], 'list-2');
    assert.equal(lines.filter(({ msg }) => msg === 'synced').length, 1);
  });

  for (const [what, lose] of [
    ['the version of each list has expired', () => send('ERROR', { code: 410 })],
    ['each watch ends at once', () => end()],
  ] as const) {
    it(`waits twice as long after each watch if ${what}, until an event arrives`, async () => {
      await start();
      for (const most of [0.5, 1, 2]) {
        const before = watches.length;
        await lose();
        assert.equal(watches.length, before, `at ${most} s`);
        await pass(most);
        assert.equal(watches.length, before + 1);
      }
      assert.equal(warnings()[0]?.['reason'], 'the watch ended at once');
      await send('BOOKMARK', { metadata: { resourceVersion: '9' } });
      const before = watches.length;
      await pass(1);
      await lose();
      assert.equal(watches.length, before + 1);
    });
  }

  it('keeps its objects through failures and waits twice as long after each, until an event arrives', async () => {
    listed = [thing('a')];
    const { reflector } = await start();
    refusals = [broken(), broken(), broken(), expired()];
    await end();
    for (const seconds of [0.5, 1, 2]) await pass(seconds);
    const waits = () =>
      lines.filter(({ msg }) => msg === 'waiting to list or watch again').map(({ waitSeconds }) => Number(waitSeconds));
    assert.equal(waits().length, 4);
    for (const [i, wait] of waits().entries()) {
      assert.ok(wait >= 0.25 * 2 ** i && wait <= 0.5 * 2 ** i, `wait ${i + 1} is ${wait} s`);
    }
    assert.deepEqual([[...reflector.items], lists.length], [[['a', 'red']], 1]);
    await pass(4);
    await pass(8);
    assert.equal(lists.length, 2, 'the version had expired');
    await send('BOOKMARK', thing(''));
    refusals = [broken()];
    await end();
    const last = Number(waits().at(-1));
    assert.ok(last <= 0.5, `the wait after an event is ${last} s`);
  });

  it('logs an outage when it begins and when it ends', async () => {
    await start();
    refusals = Array.from({ length: 1000 }, broken);
    await end();
    for (let i = 0; i < 10; i++) await pass(10);
    refusals = [];
    await pass(30);
    await send('BOOKMARK', { metadata: { resourceVersion: '9' } });
    const logged = lines.filter(({ level }) => Number(level) >= 30).map(({ msg }) => msg);
    const failed = 'list or watch failed; keeping the cache and retrying';
    assert.deepEqual([logged.length, logged.slice(-2)], [3, [failed, 'recovered']]);
  });

  it('ends with the signal, without a warning', async () => {
    const { running } = await start();
    stop.abort();
    await running;
    assert.deepEqual([warnings(), watches.length], [[], 1]);
  });

  describe('of an optional kind', () => {
    it('counts as empty and lists again every 30 s while it is not installed', async () => {
      listed = missing();
      const { reflector } = await start({ optional: true });
      assert.deepEqual([reflector.synced, reflector.items.size, lists.length], [true, 0, 1]);
      await pass(29.9);
      assert.equal(lists.length, 1);
      listed = [thing('a')];
      await pass(0.1);
      assert.deepEqual([lists.length, [...reflector.items]], [2, [['a', 'red']]]);
      assert.deepEqual(warnings(), []);
      assert.equal(reflector.lastHeard, 30);
    });

    it('loses its objects when it is uninstalled, and gets them back', async () => {
      listed = [thing('a'), thing('b')];
      const { reflector } = await start({ optional: true });
      listed = missing();
      refusals = [missing()];
      await pass(1);
      await end();
      assert.equal(reflector.items.size, 2, 'the watch alone was refused');
      await pass(0.5);
      const gone = ['a', 'b'].map((key) => ({ key, before: 'red', after: undefined }));
      assert.deepEqual([changes.slice(2), reflector.items.size], [gone, 0]);
      listed = [thing('a', 'new')];
      await pass(30);
      assert.deepEqual([...reflector.items], [['a', 'new']]);
    });
  });

  it('does not count a required kind that is not installed as empty', async () => {
    listed = missing();
    const { reflector } = await start();
    assert.equal(reflector.synced, false);
    assert.equal(warnings().length, 1);
  });
});
