import assert from 'node:assert/strict';
import { mock } from 'node:test';
import type { PodResourcesClient } from '../../../kube/kubelet-api/pod-resources-client.ts';
import { KubeletApiError } from '../../../kube/kubelet-api/transport.ts';
import type { Reading } from '../../../node-agent/assignments/checkpoint.ts';
import { type AnswerVerdict, PodResourcesSource } from '../../../node-agent/assignments/pod-resources-source.ts';
import type { PodResourcesAnswer } from '../../../node-agent/assignments/view.ts';
import { Guard } from '../../../node-agent/lifecycle/duty.ts';
import { podResourcesOf } from '../../support/pod-resources.ts';
import { messagesOf, recordingLogger, tempDirectories, turns } from '../support.ts';

describe('queries of the kubelet, in virtual time', () => {
  const temp = tempDirectories();
  let now: number;
  /** The times of rounds, in milliseconds since the start. */
  let rounds: number[];
  let limits: unknown[];
  let verdict: AnswerVerdict;
  let failure: Error | undefined;
  let answering: Promise<void>;
  let readings: { reading: Reading<PodResourcesAnswer>; startedAt: number }[];
  let codes: string[];
  let logged: ReturnType<typeof recordingLogger>;
  let stop: AbortController;
  let source: PodResourcesSource;

  const START = 1_000_000;
  /** A timer of 0 ms runs after one millisecond, the others at multiples of ten. */
  const pass = async (milliseconds: number) => {
    const end = now + milliseconds;
    let next = now + 1;
    await turns();
    while (now < end) {
      next = Math.min(next, end);
      const step = next - now;
      now = next;
      mock.timers.tick(step);
      await turns();
      next = (Math.floor(now / 10) + 1) * 10;
    }
  };

  beforeEach(async () => {
    now = START - 1;
    mock.method(performance, 'now', () => now);
    mock.method(Math, 'random', () => 1);
    mock.timers.enable({ apis: ['setTimeout'] });
    [rounds, limits, readings, codes] = [[], [], [], []];
    [verdict, failure, answering] = ['later', undefined, Promise.resolve()];
    logged = recordingLogger();
    stop = new AbortController();
    const client = {
      allocatable: async (options: unknown) => {
        rounds.push(now - START);
        limits.push(options);
        await answering;
        if (failure !== undefined) throw failure;
        return { cpuIds: [2, 3], devices: [] };
      },
      list: async (options: unknown) => {
        limits.push(options);
        return [podResourcesOf({ namespace: 'ns', name: 'vm', containers: [{ name: 'compute', cpuIds: [2] }] })];
      },
    } as unknown as PodResourcesClient;
    const onReading = (reading: Reading<PodResourcesAnswer>, startedAt: number) => {
      readings.push({ reading, startedAt: startedAt - START });
      return verdict;
    };
    const onFailure = (code: string) => codes.push(code);
    const deps = { client, kubeletDir: temp(), podsWithCpus: () => new Set<string>(), log: logged.log };
    source = new PodResourcesSource({ ...deps, onReading, onFailure }, new Guard(), stop.signal);
    source.follow();
    await pass(1);
  });
  afterEach(() => {
    stop.abort();
    mock.timers.reset();
    mock.reset();
  });

  const FAILED = '40 querying the kubelet failed; keeping the last answer and retrying';

  it('come once at the start, with a deadline, and again after a request', async () => {
    await pass(100);
    assert.deepEqual(rounds, [0]);
    const { signal } = stop;
    assert.deepEqual(limits, [
      { signal, deadlineSeconds: 5 },
      { signal, deadlineSeconds: 5 },
    ]);
    const [{ reading, startedAt } = {}] = readings;
    assert.equal(startedAt, 0);
    assert.equal(reading?.problem, undefined);
    assert.equal(reading?.value?.allocatable.toString(), '2-3');
    assert.equal(reading.value.listed.map(({ container, cpus }) => `${container} ${cpus}`).join(), 'compute 2');
    source.refresh();
    source.refresh();
    await pass(20_000);
    assert.deepEqual(rounds, [0, 101]);
    assert.deepEqual([messagesOf(logged), codes], [[], []]);
  });

  const pauses: [AnswerVerdict, number][] = [
    ['later', 30_000],
    ['poll', 1000],
  ];
  for (const [next, pause] of pauses) {
    it(`come again after ${pause / 1000} s if the answer asks for that: ${next}`, async () => {
      await pass(99);
      verdict = next;
      source.refresh();
      await pass(pause - 9);
      assert.deepEqual(rounds, [0, 100]);
      await pass(pause + 10);
      assert.deepEqual(rounds, [0, 100, 100 + pause, 100 + 2 * pause]);
    });
  }

  it('come with increasing pauses, at most 5 s, until an answer is usable, and then start over', async () => {
    await pass(99);
    verdict = 'soon';
    source.refresh();
    await pass(17_500);
    const pausesOf = (times: readonly number[]) => times.slice(1).map((time, i) => time - (times[i] ?? 0));
    assert.deepEqual(pausesOf(rounds.slice(1)), [200, 400, 800, 1600, 3200, 5000, 5000]);
    verdict = 'later';
    await pass(20_000);
    const { length } = rounds;
    verdict = 'soon';
    source.refresh();
    await pass(700);
    assert.deepEqual(pausesOf(rounds.slice(length)), [200, 400]);
  });

  it('failed: each is counted, each new problem is logged, and the last answer is kept', async () => {
    await pass(10);
    failure = new KubeletApiError('List', '/socket', { code: 14, details: 'gone' });
    source.refresh();
    await pass(1000);
    assert.deepEqual(codes, ['unavailable', 'unavailable', 'unavailable']);
    assert.deepEqual(messagesOf(logged), [FAILED]);
    const problem = (failure as Error).message;
    assert.equal(logged.lines[0]?.['reason'], problem);
    assert.equal(readings.length, 2);
    assert.deepEqual(readings[1]?.reading, { value: readings[0]?.reading.value, problem });
    failure = new Error(`GetAllocatableResources: ${'x'.repeat(400)}`);
    await pass(1000);
    assert.equal(codes.at(-1), 'failed');
    assert.ok((readings.at(-1)?.reading.problem?.length ?? 0) <= 301);
    failure = undefined;
    await pass(10_000);
    assert.equal(readings.at(-1)?.reading.problem, undefined);
    assert.deepEqual(messagesOf(logged), [FAILED, FAILED, '30 recovered']);
  });

  it('end with the signal, also in the middle of a round', async () => {
    verdict = 'poll';
    source.refresh();
    await pass(100);
    const { length } = readings;
    let answer = () => {};
    answering = new Promise((resolve) => {
      answer = resolve;
    });
    await pass(1000);
    assert.equal(rounds.length, 3);
    stop.abort();
    failure = new Error('cancelled');
    answer();
    source.refresh();
    await pass(5000);
    assert.equal(rounds.length, 3);
    assert.deepEqual([codes, messagesOf(logged), readings.length], [[], [], length]);
  });
});
