import assert from 'node:assert/strict';
import { mock } from 'node:test';
import { type KubeClient, KubeError } from '../../kube/client.ts';
import { ApiEventRecorder, type EventTarget, nodeTarget } from '../../kube/events.ts';
import { recordingLogger } from '../support/logger.ts';

interface Written {
  readonly path: string;
  readonly name: string;
  readonly event: Record<string, unknown>;
}

const kubevirt = { apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachineInstance' };
const vm = (name: string): EventTarget => ({ ...kubevirt, name, namespace: 'tenants', uid: `uid-${name}` });
const text = (message = 'padded', reason = 'Padded') => ({ type: 'Normal', reason, message }) as const;

describe('an Event recorder', () => {
  let now: number;
  let written: Written[];
  let patches: { name: string; count?: number }[];
  let stored: Map<string, Record<string, unknown>>;
  beforeEach(() => {
    now = 0;
    written = [];
    patches = [];
    stored = new Map();
  });

  /** A client with the Events of the API server: it refuses what the API server refuses. */
  const start = (fail: () => Promise<unknown> = async () => undefined, host?: string) => {
    const { log, lines } = recordingLogger();
    const client = {
      async create(path: string, body: object) {
        const event = structuredClone(body) as Written['event'] & { metadata: { name: string } };
        const { name } = event.metadata;
        written.push({ path, name, event });
        await fail();
        if (stored.has(name)) throw new KubeError(409, 'AlreadyExists', 'exists');
        stored.set(name, event);
      },
      async patch(path: string, type: string, changes: object) {
        assert.equal(type, 'application/merge-patch+json');
        const [, name = ''] = /([^/]+)$/.exec(path) ?? [];
        patches.push({ name, ...changes });
        await fail();
        const event = stored.get(name);
        if (event === undefined) throw new KubeError(404, 'NotFound', 'no such Event');
        stored.set(name, { ...event, ...changes });
      },
    } as unknown as KubeClient;
    const options = { client, component: 'test', log, nowSeconds: () => now, ...(host && { host }) };
    return { recorder: new ApiEventRecorder(options), lines };
  };

  /** The Events as `kubectl describe` lists them: by their last time, each with its count. */
  const described = () =>
    [...stored.values()]
      .sort((a, b) => String(a['lastTimestamp']).localeCompare(String(b['lastTimestamp'])))
      .map(({ reason, message, count }) => `${reason} ${message} x${count}`);

  const settle = () => new Promise((resolve) => setImmediate(resolve));
  const pass = async (seconds: number) => {
    await settle();
    now += seconds;
    mock.timers.tick(seconds * 1000);
    await settle();
  };

  describe('on the API server', () => {
    beforeEach(() => mock.timers.enable({ apis: ['Date', 'setTimeout'], now: 0 }));
    afterEach(() => mock.timers.reset());

    // Each letter is an Event; the numbers are the seconds between them.
    const sequences: [string, string, number, string[], number][] = [
      ['a state that is reported three times', 'AAA', 1, ['Test A x3'], 2],
      ['a change and back', 'ABA', 1, ['Test B x1', 'Test A x2'], 3],
      ['a state that ends within its minute', 'AAB', 1, ['Test A x2', 'Test B x1'], 3],
    ];
    for (const [label, letters, seconds, expected, writes] of sequences) {
      it(`shows ${label}: the last one last, each with its count`, async () => {
        const { recorder } = start();
        for (const letter of letters) {
          recorder.record(vm('a'), text(letter, 'Test'));
          await pass(seconds);
          assert.match(described().at(-1) ?? '', new RegExp(`^Test ${letter} `), 'the newest is the last recorded');
        }
        await pass(120);
        assert.deepEqual(described(), expected);
        assert.equal(written.length + patches.length, writes);
      });
    }

    it('writes repetitions of the last one once in 60 s, and the rest in flush', async () => {
      const { recorder } = start();
      for (let second = 0; second < 125; second++) {
        recorder.record(vm('a'), text());
        await pass(1);
      }
      const counts = patches.map(({ count }) => count);
      assert.deepEqual([written.length, counts], [1, [60, 120]]);
      await recorder.flush();
      assert.deepEqual(described(), ['Padded padded x125']);
    });

    it('gives the last Event of the reason a new message above the limit, and creates those of other reasons', async () => {
      const { recorder } = start();
      for (let i = 0; i < 30; i++) {
        recorder.record(vm('a'), text(`dead for ${i} s`, 'NotReady'));
        await pass(1);
      }
      recorder.record(vm('a'), text('again', 'Ready'));
      await pass(1);
      assert.equal(written.length, 26);
      assert.deepEqual(described().slice(-2), ['NotReady dead for 29 s x6', 'Ready again x1']);
      await pass(300);
      recorder.record(vm('a'), text('dead for 40 s', 'NotReady'));
      await pass(1);
      assert.equal(written.length, 27);
    });

    it('creates an Event again that the API server has deleted', async () => {
      const { recorder } = start();
      recorder.record(vm('a'), text());
      await pass(3600);
      stored.clear();
      recorder.record(vm('a'), text());
      await pass(1);
      assert.deepEqual(described(), ['Padded padded x2']);
    });

    it('repeats a write every 10 s while the API server does not answer, with one line per minute', async () => {
      let isAway = true;
      const { recorder, lines } = start(async () => {
        if (isAway) throw new KubeError(0, 'Unreachable', 'no answer');
      });
      recorder.record(vm('a'), text('A'));
      recorder.record(vm('a'), text('B'));
      for (let i = 0; i < 12; i++) await pass(10);
      assert.equal(written.length, 26);
      const logged = lines.map(({ msg, failures }) => `${msg}: ${failures}`);
      assert.equal(logged.join(), 'writing an Event failed: 1,writing an Event failed: 13,writing an Event failed: 25');
      isAway = false;
      await pass(10);
      assert.deepEqual(described(), ['Padded A x1', 'Padded B x1']);
    });

    it('takes a creation whose answer was lost as done', async () => {
      let calls = 0;
      const { recorder } = start(async () => {
        if (calls++ > 0) return;
        const [{ name, event }] = written as [Written];
        stored.set(name, event);
        throw new KubeError(0, 'Unreachable', 'no answer');
      });
      recorder.record(vm('a'), text());
      await pass(10);
      assert.deepEqual(described(), ['Padded padded x1']);
      assert.equal(written[1]?.name, written[0]?.name);
    });

    for (const [status, reason, attempts] of [
      [403, 'Forbidden', 1],
      [429, 'TooManyRequests', 2],
      [500, 'InternalError', 2],
    ] as const) {
      it(`makes ${attempts} attempts in 10 s after ${status}`, async () => {
        const { recorder } = start(async () => {
          throw new KubeError(status, reason, 'no');
        });
        recorder.record(vm('a'), text());
        await pass(10);
        assert.equal(written.length, attempts);
      });
    }

    it('has at most 64 writes in progress; further ones wait', async () => {
      const waiting: (() => void)[] = [];
      const { recorder } = start(() => new Promise<void>((resolve) => void waiting.push(resolve)));
      for (let i = 0; i < 66; i++) recorder.record(vm(`vm-${i}`), text());
      await settle();
      assert.equal(written.length, 64);
      for (const answer of waiting) answer();
      await settle();
      await pass(1);
      assert.equal(written.length, 66);
    });
  });

  it('writes all fields that kubectl shows, with the time in whole seconds', async () => {
    mock.timers.enable({ apis: ['Date'], now: Date.UTC(2026, 0, 2, 3, 4, 5, 678) });
    const { recorder } = start(undefined, 'worker-1');
    recorder.record(vm('a'), text('x'.repeat(2000), 'PaddedToWholeCores'));
    recorder.record(nodeTarget('worker-1'), text());
    await recorder.flush();
    mock.timers.reset();
    const [ofVm, ofNode] = written;
    assert.equal(ofVm?.path, '/api/v1/namespaces/tenants/events');
    const name = `a.${(Date.UTC(2026, 0, 2, 3, 4, 5, 678) * 1000).toString(16)}`;
    assert.deepEqual(ofVm.event, {
      apiVersion: 'v1',
      kind: 'Event',
      metadata: { name, namespace: 'tenants', labels: { 'plumbline.dev/component': 'test' } },
      involvedObject: vm('a'),
      type: 'Normal',
      reason: 'PaddedToWholeCores',
      message: 'x'.repeat(1024),
      source: { component: 'test', host: 'worker-1' },
      reportingComponent: 'test',
      reportingInstance: 'worker-1',
      firstTimestamp: '2026-01-02T03:04:05Z',
      lastTimestamp: '2026-01-02T03:04:05Z',
      count: 1,
    });
    const node = { apiVersion: 'v1', kind: 'Node', name: 'worker-1', uid: 'worker-1' };
    assert.deepEqual([ofNode?.path, ofNode?.event['involvedObject']], ['/api/v1/namespaces/default/events', node]);
  });

  it('gives Events of one millisecond different names, in the order of their times', async () => {
    mock.timers.enable({ apis: ['Date'], now: 5000 });
    const { recorder } = start();
    for (const uid of ['1', '2', '3']) recorder.record({ ...vm('a'), uid }, text());
    await recorder.flush();
    mock.timers.reset();
    const numbers = written.map(({ name }) => Number.parseInt(name.replace('a.', ''), 16));
    assert.deepEqual(numbers, [5_000_000, 5_000_001, 5_000_002]);
  });

  it('uses the first 200 characters of a long name, so that the name of the Event has at most 253', async () => {
    const { recorder } = start();
    recorder.record(vm('n'.repeat(253)), text());
    await recorder.flush();
    assert.match(written[0]?.name ?? '', /^n{200}\.[0-9a-f]{1,52}$/);
  });

  it('distinguishes Events by kind, namespace, name, uid, reason and message', async () => {
    const { recorder } = start();
    const another: readonly (readonly [EventTarget, ReturnType<typeof text>])[] = [
      [vm('a'), text()],
      [{ ...vm('a'), kind: 'Pod' }, text()],
      [{ ...vm('a'), namespace: 'others' }, text()],
      [{ ...vm('a'), name: 'b' }, text()],
      [{ ...vm('a'), uid: 'another' }, text()],
      [vm('a'), text('padded', 'Another')],
      [vm('a'), text('another')],
    ];
    for (const [target, event] of [...another, ...another]) recorder.record(target, event);
    await recorder.flush();
    assert.equal(written.length, another.length);
  });
});
