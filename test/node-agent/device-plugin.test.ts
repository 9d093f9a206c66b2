import assert from 'node:assert/strict';
import type { PodResources } from '../../kube/kubelet-api/gen/pod-resources.ts';
import { CpuSet } from '../../model/cpu-set.ts';
import { FULL_PCPUS_ANNOTATION, FULL_PCPUS_ONLY, PLACEMENT_ANNOTATION } from '../../model/names.ts';
import {
  AllocationChecker,
  checkAllocation,
  RefusedStarts,
} from '../../node-agent/device-plugin/allocation-checker.ts';
import { beforeStartCheck } from '../../node-agent/device-plugin/before-start.ts';
import type { BeforeStart } from '../../node-agent/device-plugin/plugin-server.ts';
import { silent } from '../support/logger.ts';
import { podResourcesOf } from '../support/pod-resources.ts';
import { createFakeApi, type FakeApi } from './api-stand-in.ts';
import { twoCells as host, recordingEvents, recordingLogger, set, testMetrics } from './support.ts';

const PHYSNET = 'physnet.plumbline.dev/physnet1';
const TUNNEL = 'plumbline.dev/tunnel';

describe('an allocation', () => {
  const CLAIM = { host, resource: PHYSNET, cells: set('1'), cpus: set('2-3'), wholeCores: false, spansCells: false };
  const SPANS = { spansCells: true };
  const WHOLE = { wholeCores: true };
  const cases: [label: string, cpus: string, cells: string, needs: object, refused?: string][] = [
    ['all CPUs are on the network’s NUMA node', '4-5', '1', {}],
    ['no CPU is on the network’s NUMA node', '2-3', '1', {}, 'NetworkElsewhere'],
    ['some CPUs are there, the guest has one NUMA node', '2-5', '1', {}, 'NetworkElsewhere'],
    ['some CPUs are there, the guest spans NUMA nodes', '2-5', '1', SPANS],
    ['no CPU is there, the guest spans NUMA nodes', '0-3', '1', SPANS, 'NetworkElsewhere'],
    ['the network is on both NUMA nodes', '2-5', '0-1', {}],
    ['the NUMA node of the network is unknown', '2-3', '', {}],
    ['a container in the shared pool', '', '1', WHOLE],
    ['a split core', '4,6', '1', WHOLE, 'SplitCores'],
    ['a split core, but whole cores are not required', '4,6', '1', {}],
    ['whole cores', '4-7', '1', WHOLE],
  ];
  for (const [label, cpus, cells, needs, refused] of cases) {
    it(`${label}: ${refused ?? 'granted'}`, () => {
      const claim = { ...CLAIM, cells: set(cells), cpus: set(cpus) };
      assert.equal(checkAllocation({ ...claim, ...needs })?.reason, refused);
    });
  }

  it('names the network, the NUMA nodes wanted and the CPUs given', () => {
    const messageOf = (more: object) => checkAllocation({ ...CLAIM, ...more })?.message ?? '';
    assert.equal(messageOf({}), 'physnet physnet1 is on NUMA node 1, the kubelet gave CPUs 2-3 on NUMA node 0');
    assert.match(messageOf({ resource: TUNNEL }), /^the tunnel is on NUMA/);
    assert.match(messageOf({ ...WHOLE, cpus: set('4,6') }), /CPUs 4,6, which split core 4-5 and 6-7/);
  });
});

describe('allocation checks against pods of the API server', () => {
  let api: FakeApi;
  let recorded: ReturnType<typeof recordingEvents>;
  let reads: string[];
  let refusals: RefusedStarts;
  const holder = { namespace: 'ns', podName: 'vm', container: 'compute', cpus: set('2-5') };
  const request = { holder, resource: PHYSNET, cells: set('1'), host, wholeCoresOnly: false };

  beforeEach(() => {
    api = createFakeApi('worker-1');
    recorded = recordingEvents();
    reads = [];
    refusals = new RefusedStarts(() => 0);
  });
  const check = (change: Partial<typeof request> = {}, policy: 'enforce' | 'warn' = 'enforce') => {
    const get = (path: string) => {
      reads.push(path);
      return api.client.get(path);
    };
    const checker = new AllocationChecker({
      client: { ...api.client, get },
      events: recorded.recorder,
      policy,
      refusals,
      log: silent,
      metrics: testMetrics(),
    });
    return checker.check({ ...request, ...change }, new AbortController().signal);
  };
  const pod = (annotations: Record<string, string> = {}) =>
    api.objects.set('/api/v1/namespaces/ns/pods/vm', {
      metadata: { name: 'vm', namespace: 'ns', uid: 'u1', annotations },
      spec: { containers: [{ name: 'compute' }] },
    });
  it('grants a good allocation without a request to the API server', async () => {
    assert.equal(await check({ holder: { ...holder, cpus: set('4-5') } }), undefined);
    assert.deepEqual([reads, recorded.events], [[], []]);
  });

  it('refuses a wrong allocation, with an Event on the pod', async () => {
    pod();
    assert.match((await check()) ?? '', /physnet physnet1 is on NUMA node 1, the kubelet gave CPUs 2-5/);
    const { about, type, reason, message } = recorded.events[0]!;
    assert.deepEqual([about, type, reason], ['v1 Pod ns/vm u1', 'Warning', 'NetworkElsewhere']);
    assert.match(message, /container compute: .*; it does not start/);
    const [refusal] = refusals.current();
    assert.deepEqual([refusal?.podUID, refusal?.namespace, refusal?.podName], ['u1', 'ns', 'vm']);
  });

  it('only records an Event with policy warn', async () => {
    pod();
    assert.equal(await check({}, 'warn'), undefined);
    assert.match(recorded.events[0]?.message ?? '', /it starts anyway/);
    assert.deepEqual(refusals.current(), []);
  });

  it('grants a guest that spans NUMA nodes according to the webhook’s annotation', async () => {
    pod({ [PLACEMENT_ANNOTATION]: '{"spansCells":true}' });
    assert.equal(await check(), undefined);
  });

  it('requires whole cores if the annotation or the kubelet promises them', async () => {
    const split = { holder: { ...holder, cpus: set('4,6') } };
    pod();
    assert.equal(await check(split), undefined);
    assert.match((await check({ ...split, wholeCoresOnly: true })) ?? '', /split core/);
    pod({ [FULL_PCPUS_ANNOTATION]: FULL_PCPUS_ONLY });
    assert.match((await check(split)) ?? '', /split core/);
    assert.match((await check({ holder: { ...holder, cpus: set('4-6') } })) ?? '', /split core/, 'an odd number');
  });

  it('assumes that an unreadable pod may span NUMA nodes, and still requires one CPU on the network’s NUMA node', async () => {
    api.failing = true;
    assert.equal(await check(), undefined, 'it may span');
    assert.match((await check({ holder: { ...holder, cpus: set('2-3') } })) ?? '', /NUMA node 1/);
  });
});

describe('refusals for the report', () => {
  const holder = (podName: string) => ({ namespace: 'ns', podName, container: 'compute', cpus: CpuSet.EMPTY });

  it('keeps the newest 64, shortened, and drops each after ten minutes without a repetition', () => {
    let now = 0;
    const refusals = new RefusedStarts(() => now);
    let changes = 0;
    const end = refusals.subscribe(() => changes++);
    for (let i = 0; i < 1000; i++) refusals.add(holder(`vm-${i}`), `u${i}`, 'x'.repeat(10_000));
    const refused = refusals.current();
    assert.deepEqual([refused.length, refused[0]?.podName, refused[0]?.message.length], [64, 'vm-936', 512]);
    now = 500;
    refusals.add(holder('vm-999'), 'u999', 'again');
    now = 600;
    assert.equal(refusals.current().length, 64);
    now = 600.001;
    assert.equal(
      refusals
        .current()
        .map(({ podName, message }) => `${podName} ${message}`)
        .join(),
      'vm-999 again',
    );
    end();
    refusals.add(holder('late'), undefined, '');
    assert.equal(changes, 1001);
  });
});

const device = (resourceName: string, id: string) => ({ resourceName, deviceIds: [id] });
const pods = [
  podResourcesOf({ name: 'other', containers: [{ name: 'c', cpuIds: [8], devices: [device(TUNNEL, 'tunnel-1')] }] }),
  podResourcesOf({
    name: 'vm',
    namespace: 'ns',
    containers: [
      { name: 'sidecar', cpuIds: [] },
      {
        name: 'compute',
        cpuIds: [3, 2],
        devices: [device('physnet.plumbline.dev/a', 'a-0'), device(TUNNEL, 'tunnel-0')],
      },
    ],
  }),
];

describe('before a container with Plumbline devices starts', () => {
  let holders: unknown[];
  let outcomes: string[];
  let logged: ReturnType<typeof recordingLogger>;

  const barrier = (list: () => Promise<PodResources[]>, check: () => Promise<string | undefined>) => {
    holders = [];
    outcomes = [];
    logged = recordingLogger();
    return beforeStartCheck({
      podResources: { list },
      check: (_resource, holder) => {
        holders.push(holder && { ...holder, cpus: holder.cpus.toString() });
        return check();
      },
      answerWithin: 0.05,
      onOutcome: (_resource, outcome) => outcomes.push(outcome),
      log: logged.log,
    });
  };
  const grant = async () => undefined;
  const start = (before: BeforeStart, signal = new AbortController().signal) => before(TUNNEL, ['tunnel-0'], signal);

  it('the allocation of the pod’s container is checked', async () => {
    await start(barrier(async () => pods, grant));
    assert.deepEqual(holders, [{ namespace: 'ns', podName: 'vm', container: 'compute', cpus: '2-3' }]);
    assert.deepEqual(outcomes, ['passed']);
  });

  it('the kubelet is asked again if it answers ResourceExhausted', async () => {
    let tries = 0;
    const list = async () => {
      if (++tries < 3) throw new Error('ResourceExhausted');
      return pods;
    };
    await start(barrier(list, grant));
    assert.notEqual(holders[0], undefined);
  });

  it('the check has no holder if the kubelet does not answer', async () => {
    await start(barrier(() => Promise.reject(new Error('down')), grant));
    assert.deepEqual(holders, [undefined]);
  });

  it('the kubelet is not asked again once the request is cancelled', async () => {
    const stop = new AbortController();
    let tries = 0;
    const list = () => {
      tries++;
      stop.abort();
      return Promise.reject(new Error('cancelled'));
    };
    await start(barrier(list, grant), stop.signal).catch(() => undefined);
    assert.equal(tries, 1);
    assert.ok(logged.said('allocation check skipped: owner unknown'));
  });

  it('a check that hangs does not keep the container from starting', async () => {
    const never = () => new Promise<undefined>(() => {});
    await start(barrier(async () => pods, never));
    assert.deepEqual(outcomes, ['unanswered']);
    assert.ok(logged.said('agent timed out; starting the container before its CPUs were clear'));
  });

  it('a refusal or an error of the check prevents the start, and is logged', async () => {
    for (const check of [async () => 'not there', () => Promise.reject(new Error('not there'))]) {
      await assert.rejects(start(barrier(async () => pods, check)), /^Error: not there$/);
      assert.deepEqual(outcomes, ['refused']);
      const { msg, pod, container, resource, devices, reason } = logged.lines[0] ?? {};
      assert.deepEqual([msg, pod, container], ['container start refused', 'ns/vm', 'compute']);
      assert.deepEqual([resource, devices, reason], [TUNNEL, ['tunnel-0'], 'not there']);
    }
  });
});
