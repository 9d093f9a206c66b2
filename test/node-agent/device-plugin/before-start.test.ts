import assert from 'node:assert/strict';
import type { PodResources } from '../../../kube/kubelet-api/gen/pod-resources.ts';
import { holderOf } from '../../../node-agent/device-plugin/allocation-check.ts';
import type { AllocationCheckPolicy } from '../../../node-agent/device-plugin/allocation-checker.ts';
import { createBeforeStart, type FromPluginThread } from '../../../node-agent/device-plugin/before-start.ts';
import { podResourcesOf } from '../../support/pod-resources.ts';
import { twoCells as host, recordingLogger } from '../support.ts';

const TUNNEL = 'plumbline.dev/tunnel';
const pods = [
  podResourcesOf({
    name: 'other',
    containers: [{ name: 'c', cpuIds: [8], devices: [{ resourceName: TUNNEL, deviceIds: ['tunnel-1'] }] }],
  }),
  podResourcesOf({
    name: 'vm',
    namespace: 'ns',
    containers: [
      { name: 'sidecar', cpuIds: [] },
      {
        name: 'compute',
        cpuIds: [3, 2],
        devices: [
          { resourceName: 'physnet.plumbline.dev/a', deviceIds: ['a-0'] },
          { resourceName: TUNNEL, deviceIds: ['tunnel-0'] },
        ],
      },
    ],
  }),
];

describe('the holder of devices', () => {
  const lookups: [string, string, string[], string | undefined][] = [
    ['by device', TUNNEL, ['tunnel-0'], '2-3'],
    ['only of the same resource', 'physnet.plumbline.dev/a', ['tunnel-0'], undefined],
    ['a device without a container', TUNNEL, ['tunnel-7'], undefined],
  ];
  for (const [name, resource, ids, expected] of lookups) {
    it(`finds the container’s CPUs: ${name}`, () =>
      assert.equal(holderOf(pods, resource, ids)?.cpus.toString(), expected));
  }
});

describe('before a container with Plumbline devices starts', () => {
  let posted: FromPluginThread[];
  let logged: ReturnType<typeof recordingLogger>;

  /** The plugin's side. `refusal` is the main thread's answer; `undefined` in a list grants. */
  const barrier = (
    list: () => Promise<PodResources[]>,
    answers: (string | undefined)[] | 'silence',
    policy: AllocationCheckPolicy = 'enforce',
  ) => {
    posted = [];
    logged = recordingLogger();
    const { log } = logged;
    const made = createBeforeStart({
      podResources: { list },
      host,
      policy,
      answerWithin: 0.05,
      log,
      post(message) {
        posted.push(message);
        if (message.kind !== 'before-start' || answers === 'silence') return;
        queueMicrotask(() => made.answered(message.call, answers[0]));
      },
    });
    made.know([{ name: TUNNEL, cells: [1], slots: 2, preStart: true, healthy: true }], false);
    return made;
  };
  const start = (made: ReturnType<typeof barrier>, ids = ['tunnel-0']) =>
    made.beforeStart(TUNNEL, ids, new AbortController().signal);
  const question = () => posted.find((message) => message.kind === 'before-start');
  const outcome = () => posted.find((message) => message.kind === 'pre-start')?.outcome;

  it('the plugin asks the main thread, with pod, container and CPUs', async () => {
    await start(barrier(async () => pods, [undefined]));
    assert.deepEqual(question()?.holder, { namespace: 'ns', podName: 'vm', container: 'compute', cpus: '2-3' });
    assert.equal(outcome(), 'passed');
  });

  it('the request has no holder if the container is not listed or the kubelet does not answer', async () => {
    await start(barrier(async () => [], [undefined]));
    assert.equal(question()?.holder, undefined);
    await start(barrier(() => Promise.reject(new Error('down')), [undefined]));
    assert.equal(question()?.holder, undefined);
  });

  it('the plugin retries if the kubelet answers ResourceExhausted', async () => {
    let tries = 0;
    const list = async () => {
      if (++tries < 3) throw new Error('ResourceExhausted');
      return pods;
    };
    await start(barrier(list, [undefined]));
    assert.equal(question()?.holder?.cpus, '2-3');
  });

  it('if the main thread hangs, the plugin stops waiting after the timeout and checks the allocation itself', async () => {
    await assert.rejects(start(barrier(async () => pods, 'silence')), /the tunnel is on NUMA node 1/);
    await start(barrier(async () => pods, 'silence', 'warn'));
    assert.equal(outcome(), 'unanswered');
    await start(barrier(async () => [], 'silence'));
    assert.equal(outcome(), 'unanswered');
  });

  it('the kubelet is not asked again once the request is cancelled', async () => {
    const stop = new AbortController();
    let tries = 0;
    const list = () => {
      tries++;
      stop.abort();
      return Promise.reject(new Error('cancelled'));
    };
    await barrier(list, [undefined])
      .beforeStart(TUNNEL, ['tunnel-0'], stop.signal)
      .catch(() => undefined);
    assert.equal(tries, 1);
    assert.ok(logged.said('allocation check skipped: owner unknown'));
  });

  it('a refusal prevents the start, and is logged', async () => {
    const made = barrier(async () => pods, ['not there']);
    await assert.rejects(start(made), /^Error: not there$/);
    assert.equal(outcome(), 'refused');
    const { msg, pod, container, resource, devices, reason } = logged.lines[0] ?? {};
    assert.deepEqual([msg, pod, container], ['container start refused', 'ns/vm', 'compute']);
    assert.deepEqual([resource, devices, reason], [TUNNEL, ['tunnel-0'], 'not there']);
  });

  it('each request has its own number, and a late answer to an earlier one does not count', async () => {
    const made = barrier(async () => pods, 'silence', 'warn');
    await start(made);
    const waiting = start(made);
    const isAsked = () => posted.filter(({ kind }) => kind === 'before-start').length === 2;
    while (!isAsked()) await Promise.resolve();
    made.answered(1, 'too late');
    await waiting;
    const calls = posted.flatMap((message) => (message.kind === 'before-start' ? [message.call] : []));
    assert.deepEqual(calls, [1, 2]);
    assert.equal(outcome(), 'unanswered');
  });

  it('without an answer, half a core is refused if the kubelet assigns whole cores only', async () => {
    const half = [
      podResourcesOf({
        name: 'vm',
        namespace: 'ns',
        containers: [{ name: 'c', cpuIds: [5, 6], devices: [{ resourceName: TUNNEL, deviceIds: ['tunnel-0'] }] }],
      }),
    ];
    for (const wholeCoresOnly of [false, true]) {
      const made = barrier(async () => half, 'silence');
      made.know([{ name: TUNNEL, cells: [1], slots: 2, preStart: true, healthy: true }], wholeCoresOnly);
      if (wholeCoresOnly) await assert.rejects(start(made), /split core/);
      else await start(made);
    }
  });
});
