import assert from 'node:assert/strict';
import { mock } from 'node:test';
import { type KubeClient, KubeError } from '../../kube/client.ts';
import { createEventRecorder, type EventTarget, nodeTarget } from '../../kube/events.ts';
import { recordingLogger } from '../support/logger.ts';

interface Written {
  readonly path: string;
  readonly name: string;
  readonly reason: string;
  readonly message: string;
  readonly event: Record<string, unknown>;
}

const vm = (name: string): EventTarget => ({
  apiVersion: 'kubevirt.io/v1',
  kind: 'VirtualMachineInstance',
  name,
  namespace: 'tenants',
  uid: `uid-${name}`,
});
const text = (message = 'padded', reason = 'Padded') => ({ type: 'Normal', reason, message }) as const;

describe('an Event recorder', () => {
  let now: number;
  let written: Written[];
  beforeEach(() => {
    now = 0;
    written = [];
  });

  const start = (create: () => Promise<unknown> = async () => ({}), host?: string) => {
    const { log, lines } = recordingLogger();
    const client = {
      create: (path: string, body: object) => {
        const event = body as { metadata: { name: string }; reason: string; message: string } & Record<string, unknown>;
        written.push({ path, name: event.metadata.name, reason: event.reason, message: event.message, event });
        return create();
      },
    } as unknown as KubeClient;
    const recorder = createEventRecorder({ client, component: 'test', ...(host && { host }), log, now: () => now });
    return { recorder, lines };
  };

  it('writes into the namespace of the object, or into default', async () => {
    const { recorder } = start(undefined, 'worker-1');
    recorder.record(vm('a'), text('x'.repeat(2000)));
    recorder.record(nodeTarget('worker-1'), text());
    await recorder.flush();
    assert.deepEqual(
      written.map(({ path }) => path),
      ['/api/v1/namespaces/tenants/events', '/api/v1/namespaces/default/events'],
    );
    assert.equal(written[0]?.message.length, 1024);
    assert.match(written[0]?.name ?? '', /^a\.[0-9a-f]+$/);
    assert.deepEqual(written[1]?.event['involvedObject'], {
      apiVersion: 'v1',
      kind: 'Node',
      name: 'worker-1',
      uid: 'worker-1',
    });
    assert.deepEqual(written[0]?.event['source'], { component: 'test', host: 'worker-1' });
    assert.equal(written[0]?.event['reportingInstance'], 'worker-1');
  });

  it('writes the same Event of an object once per minute, with a unique name', async () => {
    const { recorder } = start();
    for (const at of [0, 59.9, 60, 119.9, 120]) {
      now = at;
      recorder.record(vm('a'), text());
    }
    recorder.record(vm('a'), text('another message'));
    recorder.record(vm('b'), text());
    await recorder.flush();
    assert.equal(written.length, 5);
    assert.equal(new Set(written.map(({ name }) => name)).size, 5);
    assert.deepEqual(written[0]?.event['source'], { component: 'test' });
  });

  it('remembers the last 1,000 Events, so an older one may be written again', async () => {
    const { recorder } = start();
    const record = async (i: number) => {
      recorder.record(vm(`vm-${i}`), text());
      await recorder.flush();
    };
    for (let i = 0; i < 1000; i++) await record(i);
    await record(0);
    assert.equal(written.length, 1000, 'the first is still known');
    await record(1000);
    await record(0);
    assert.equal(written.length, 1002, 'the first was forgotten for the newest');
    await record(2);
    assert.equal(written.length, 1002, 'one alone was forgotten each time');
  });

  it('writes 25 Events of an object at once and one more every 300 s, and logs that once per minute', async () => {
    const { recorder, lines } = start();
    for (let i = 0; i < 30; i++) recorder.record(vm('a'), text(`message ${i}`));
    await recorder.flush();
    assert.equal(written.length, 25);
    assert.deepEqual(
      lines.map(({ msg, dropped }) => [msg, dropped]),
      [['Events dropped', 1]],
    );
    now = 59.9;
    recorder.record(vm('a'), text('still too many'));
    assert.equal(lines.length, 1);
    now = 60;
    recorder.record(vm('a'), text('and again'));
    assert.deepEqual(
      lines.map(({ dropped }) => dropped),
      [1, 7],
    );
    now = 300;
    recorder.record(vm('a'), text('one is left'));
    recorder.record(vm('a'), text('none is left'));
    await recorder.flush();
    assert.equal(written.length, 26);
  });

  it('has at most 64 writes in progress, and counts a failed one as finished', async () => {
    const waiting: (() => void)[] = [];
    const { recorder, lines } = start(
      () => new Promise((_, reject) => void waiting.push(() => reject(new KubeError(500, 'InternalError', 'no')))),
    );
    for (let i = 0; i < 66; i++) recorder.record(vm(`vm-${i}`), text());
    assert.equal(written.length, 64);
    assert.match(JSON.stringify(lines), /too many writes are under way/);
    for (const fail of waiting) fail();
    await recorder.flush();
    recorder.record(vm('later'), text());
    assert.equal(written.length, 65);
    assert.equal(lines.filter(({ msg }) => msg === 'writing an Event failed').length, 64);
  });

  it('does not log an Event that already exists', async () => {
    const { recorder, lines } = start(async () => {
      throw new KubeError(409, 'AlreadyExists', 'exists');
    });
    recorder.record(vm('a'), text());
    await recorder.flush();
    assert.deepEqual(lines, []);
  });

  it('writes all fields that kubectl shows, with the time in whole seconds', async () => {
    mock.timers.enable({ apis: ['Date'], now: Date.UTC(2026, 0, 2, 3, 4, 5, 678) });
    const { recorder } = start(undefined);
    recorder.record(vm('a'), text('padded', 'PaddedToWholeCores'));
    await recorder.flush();
    mock.timers.reset();
    assert.deepEqual(written[0]?.event, {
      apiVersion: 'v1',
      kind: 'Event',
      metadata: {
        name: `a.${(Date.UTC(2026, 0, 2, 3, 4, 5, 678) * 1000).toString(16)}`,
        namespace: 'tenants',
        labels: { 'plumbline.dev/component': 'test' },
      },
      involvedObject: vm('a'),
      type: 'Normal',
      reason: 'PaddedToWholeCores',
      message: 'padded',
      source: { component: 'test' },
      reportingComponent: 'test',
      reportingInstance: '',
      firstTimestamp: '2026-01-02T03:04:05Z',
      lastTimestamp: '2026-01-02T03:04:05Z',
      count: 1,
    });
  });

  it('gives 1,000 Events of one millisecond different names, in the order of their times', async () => {
    mock.timers.enable({ apis: ['Date'], now: 5000 });
    const { recorder } = start();
    const record = async (i: number) => {
      recorder.record({ ...vm('a'), uid: `${i}` }, text());
      await recorder.flush();
    };
    for (let i = 0; i < 1000; i++) await record(i);
    mock.timers.setTime(5001);
    await record(1000);
    mock.timers.reset();
    const numbers = written.map(({ name }) => Number.parseInt(name.replace('a.', ''), 16));
    assert.deepEqual(
      numbers,
      Array.from({ length: 1001 }, (_, i) => 5_000_000 + i),
    );
  });

  it('uses the first 200 characters of a long name, so that the name of the Event has at most 253', async () => {
    const { recorder } = start();
    recorder.record(vm('n'.repeat(253)), text());
    await recorder.flush();
    assert.match(written[0]?.name ?? '', /^n{200}\.[0-9a-f]{1,52}$/);
    assert.deepEqual(written[0]?.event['involvedObject'], vm('n'.repeat(253)));
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

  it('saves up at most 25 Events for an object, however long it is silent', async () => {
    const { recorder } = start();
    recorder.record(vm('a'), text('first'));
    now = 1_000_000;
    for (let i = 0; i < 30; i++) recorder.record(vm('a'), text(`message ${i}`));
    await recorder.flush();
    assert.equal(written.length, 26);
  });

  it('a dropped Event costs an object nothing', async () => {
    const { recorder } = start();
    for (let i = 0; i < 25; i++) recorder.record(vm('a'), text(`message ${i}`));
    for (let i = 1; i <= 8; i++) {
      now = i * 150;
      recorder.record(vm('a'), text(`later ${i}`));
      await recorder.flush();
      assert.equal(written.length, 25 + Math.floor(i / 2), `after ${now} s`);
    }
  });

  it('keeps the budgets of the last 1,000 objects', async () => {
    const { recorder } = start();
    const record = async (target: EventTarget, message: string) => {
      const before = written.length;
      recorder.record(target, text(message));
      await recorder.flush();
      return written.length > before;
    };
    for (let i = 0; i < 25; i++) assert.ok(await record(vm('busy'), `${i}`));
    for (let i = 0; i < 999; i++) assert.ok(await record(vm(`vm-${i}`), 'x'));
    assert.equal(await record(vm('busy'), 'is known'), false);
    for (let i = 1000; i < 1999; i++) assert.ok(await record(vm(`vm-${i}`), 'x'));
    assert.equal(await record(vm('busy'), 'is still known'), false);
    for (let i = 2000; i < 3000; i++) assert.ok(await record(vm(`vm-${i}`), 'x'));
    assert.equal(await record(vm('busy'), 'is forgotten'), true);
  });

  it('waits in flush for every Event in progress', async () => {
    let answer = (): void => undefined;
    const { recorder } = start(
      () =>
        new Promise<void>((resolve) => {
          answer = resolve;
        }),
    );
    recorder.record(vm('a'), text());
    let flushed = false;
    const flushing = recorder.flush().then(() => {
      flushed = true;
    });
    await new Promise((resolve) => setImmediate(resolve));
    assert.equal(flushed, false);
    answer();
    await flushing;
  });

  it('logs why Events were dropped', async () => {
    const { recorder, lines } = start();
    for (let i = 0; i < 26; i++) recorder.record(vm('a'), text(`message ${i}`));
    await recorder.flush();
    assert.deepEqual(
      lines.map(({ why }) => why),
      ['too many Events of one object'],
    );
  });
});
