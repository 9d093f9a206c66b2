import assert from 'node:assert/strict';
import { mock } from 'node:test';
import {
  type DutyObserver,
  Guard,
  keepRunning,
  Problems,
  Throttle,
  untilAborted,
} from '../../../node-agent/lifecycle/duty.ts';
import { recordingLogger, turns } from '../support.ts';

describe('problems', () => {
  it('are listed in order until they end; listeners get each change and nothing else', () => {
    const problems = new Problems();
    let notifications = 0;
    const end = problems.subscribe(() => void notifications++);
    problems.set('a', undefined);
    for (const subject of ['b', 'a', 'b']) problems.set(subject, subject);
    assert.deepEqual([problems.current, notifications], [['a', 'b'], 2]);
    end();
    problems.set('a', undefined);
    assert.deepEqual([problems.current, notifications], [['b'], 2]);
  });
});

describe('a duty that is kept running', () => {
  const log = recordingLogger();
  let messages: string[];
  const observer: DutyObserver = {
    onState: (duty, running) => void messages.push(`${duty} ${running ? 'runs' : 'waits'}`),
    onFailure: (duty) => void messages.push(`${duty} failed`),
  };
  beforeEach(() => {
    messages = [];
    log.lines.length = 0;
    mock.timers.enable({ apis: ['setTimeout'] });
  });
  afterEach(() => mock.timers.reset());

  it('is restarted after a failure, each time with its own signal, after growing pauses', async () => {
    const stopping = new AbortController();
    const signals: AbortSignal[] = [];
    const run = async (signal: AbortSignal) => {
      signals.push(signal);
      throw new Error('no');
    };
    const running = keepRunning({ name: 'd', run }, log.log, observer, stopping.signal);
    await turns();
    assert.deepEqual(messages, ['d runs', 'd failed', 'd waits']);
    assert.equal(log.lines[0]?.['duty'], 'd');
    // The pauses are up to half a second, then up to one second.
    for (const pause of [1000, 2000]) {
      mock.timers.tick(pause);
      await turns();
    }
    assert.equal(new Set(signals.filter((signal) => signal.aborted)).size, 3);
    stopping.abort();
    await running;
    assert.equal(messages.at(-1), 'd waits');
  });

  it('is restarted soon after a run of more than a minute, whatever failed before', async () => {
    const stopping = new AbortController();
    let now = 1_000_000;
    mock.method(performance, 'now', () => now);
    let runs = 0;
    const run = async () => {
      runs++;
      if (runs === 6) now += 61_000;
      throw new Error('no');
    };
    const running = keepRunning({ name: 'd', run }, log.log, observer, stopping.signal);
    // Five problems in a row: the next pause would be between 8 and 16 seconds.
    for (const pause of [500, 1000, 2000, 4000, 8000, 500]) {
      await turns();
      mock.timers.tick(pause);
    }
    await turns();
    assert.equal(runs, 7);
    stopping.abort();
    await running;
    mock.restoreAll();
  });

  it('ends with the signal, and is not started after the signal; one that ends by itself is not restarted', async () => {
    const stopping = new AbortController();
    await keepRunning({ name: 'd', run: async () => {} }, log.log, observer, stopping.signal);
    assert.deepEqual([messages.splice(0), log.lines], [['d runs', 'd waits'], []]);
    const running = keepRunning({ name: 'd', run: untilAborted }, log.log, observer, stopping.signal);
    await turns();
    assert.deepEqual(messages, ['d runs']);
    stopping.abort();
    await running;
    assert.deepEqual([messages, log.lines], [['d runs', 'd waits'], []]);
    messages = [];
    await keepRunning({ name: 'd', run: async () => {} }, log.log, observer, stopping.signal);
    assert.deepEqual(messages, []);
  });
});

describe('a guard', () => {
  it('passes arguments on and fails with the first exception', async () => {
    const guard = new Guard();
    const seen: unknown[] = [];
    guard.wrap((...args: unknown[]) => void seen.push(...args))(1, 'a');
    assert.deepEqual(seen, [1, 'a']);
    const throwing = guard.wrap(() => {
      throw new Error('first');
    });
    throwing();
    guard.fail(new Error('second'));
    await assert.rejects(guard.until(new AbortController().signal), /first/);
    const other = new Guard();
    other.fail(new Error('given'));
    await assert.rejects(other.until(new AbortController().signal), /given/);
  });
});

describe('paced work', () => {
  let now: number;
  beforeEach(() => {
    now = 1000;
    mock.timers.enable({ apis: ['setTimeout'] });
    mock.method(performance, 'now', () => now);
  });
  afterEach(() => {
    mock.timers.reset();
    mock.restoreAll();
  });

  it('runs once for any number of requests', () => {
    let done = 0;
    const paced = new Throttle(() => done++, 0.02, 10);
    for (let i = 0; i < 100; i++) paced.soon();
    mock.timers.tick(19);
    assert.equal(done, 0);
    mock.timers.tick(1000);
    assert.equal(done, 1);
  });

  it('uses only its share of the time for any number of requests', () => {
    let busy = 0;
    const work = () => {
      now += 10;
      busy += 10;
    };
    const paced = new Throttle(work, 0, 10);
    const begun = now;
    for (let millisecond = 0; millisecond < 1000; millisecond++) {
      paced.soon();
      now += 1;
      mock.timers.tick(1);
    }
    const share = busy / (now - begun);
    assert.ok(busy >= 20 && share < 0.11, `${busy} ms, ${Math.round(share * 100)} %`);
  });

  it('does not run after a cancel', () => {
    let done = 0;
    const paced = new Throttle(() => done++, 0.01, 10);
    paced.soon();
    paced.cancel();
    mock.timers.tick(1000);
    assert.equal(done, 0);
    paced.now();
    assert.equal(done, 1);
  });
});
