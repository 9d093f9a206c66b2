import assert from 'node:assert/strict';
import { mock } from 'node:test';
import fc from 'fast-check';
import { KubeError } from '../../../kube/client.ts';
import { type NodeTopology, nodeTopologyStatus } from '../../../kube/node-topology.ts';
import { CpuSet } from '../../../model/cpu-set.ts';
import { preparedHost } from '../../../model/placement/needs.ts';
import { UNKNOWN_VIEW } from '../../../node-agent/assignments/view.ts';
import { createReport } from '../../../node-agent/report/report.ts';
import { buildStatus, type ReportInputs } from '../../../node-agent/report/status.ts';
import { createMergePatch, type PatchValue } from '../../../node-agent/report/topology-store.ts';
import { createFakeApi, type FakeApi } from '../api-stand-in.ts';
import { eventually, recordingLogger, testMetrics } from '../support.ts';
import { inputs, knownView, networks } from './inputs-fixture.ts';

const NODE = 'worker-1';
const PATH = `/apis/plumbline.dev/v1alpha1/nodetopologies/${NODE}`;

describe('the report', () => {
  it('is a NodeTopology status', () => {
    const status = buildStatus(inputs, undefined, '2026-01-01T00:00:00Z');
    assert.deepEqual(nodeTopologyStatus.parse(status), status);
    assert.deepEqual(status?.assignments, [
      { podUID: 'u', namespace: 'ns', podName: 'vm', container: 'compute', cpus: '1-2' },
      { podUID: 'v', container: 'compute', cpus: '4' },
    ]);
    assert.deepEqual(status.physnets, [{ name: 'physnet0', cells: '' }]);
    assert.deepEqual(status.tunnel, { cells: '0-1' });
    assert.deepEqual(
      status.conditions?.map(({ type, status: state }) => [type, state]),
      [
        ['AssignmentsKnown', 'True'],
        ['KubeletConfigKnown', 'False'],
        ['NetworksKnown', 'True'],
        ['NetworkMapValid', 'True'],
        ['NetworkMapAgrees', 'True'],
        ['UplinksUp', 'True'],
        ['NetworksPolledNear', 'True'],
        ['OpenVswitchInPlace', 'True'],
        ['DutiesRunning', 'True'],
      ],
    );
  });

  it('reports if the agent runs with --vm-pinning off', () => {
    const [on, off] = [true, false].map((pinsVms) => buildStatus({ ...inputs, pinsVms }, undefined, 'now'));
    assert.ok(on !== undefined && !('pinsVMs' in on));
    assert.equal(nodeTopologyStatus.parse(off).pinsVMs, false);
  });

  it('does not exist while the owners of CPUs or the networks are unknown', () => {
    for (const missing of ['free', 'reserved', 'policy'] as const) {
      assert.equal(
        buildStatus({ ...inputs, view: { ...knownView, [missing]: undefined } }, undefined, 'now'),
        undefined,
      );
    }
    assert.equal(buildStatus({ ...inputs, networks: undefined }, undefined, 'now'), undefined);
  });

  it('keeps the time of a condition while its status is the same', () => {
    const before = buildStatus(inputs, undefined, '2026-01-01T00:00:00Z');
    const torn = { ...inputs, view: { ...knownView, problems: ['torn'] } };
    const after = buildStatus(torn, before, '2026-02-02T00:00:00Z')?.conditions;
    assert.deepEqual(
      after?.map(({ lastTransitionTime }) => lastTransitionTime.slice(5, 7)),
      ['02', ...Array.from({ length: 8 }, () => '01')],
    );
    assert.equal(after[0]?.message, 'torn');
  });

  it('has the NUMA nodes of the memory manager with reserved memory, distances and isolated CPUs', () => {
    const kubeletConfig = {
      source: 'config.yaml',
      cpuManager: { policy: 'static', options: {} },
      topologyManager: { policy: 'none', scope: 'container', options: {} },
      memoryManager: { policy: 'Static' },
      reservedMemory: new Map([[0, { memory: 2 ** 30 }]]),
      reserved: undefined,
      maxPods: 110,
      featureGates: {},
    };
    const status = buildStatus({ ...inputs, kubeletConfig, isolated: CpuSet.parse('2-3') }, undefined, 'now');
    assert.deepEqual(nodeTopologyStatus.parse(status), status);
    assert.deepEqual(status?.memoryManager, {
      policy: 'Static',
      cells: [{ id: 0, memory: 2 ** 33, hugePages: { 'hugepages-2Mi': 2 ** 21 }, reserved: { memory: 2 ** 30 } }],
    });
    assert.deepEqual([status.distances, status.isolated], [{ 0: [10] }, '2-3']);
    assert.ok(preparedHost(status).host.online.size === 4, 'the extender takes it');
  });

  const doubts: [string, Partial<ReportInputs>, string, string, RegExp][] = [
    [
      'an unusable map',
      { networks: { ...networks, problems: [{ reason: 'InvalidMap', message: 'map.yaml: physnets' }] } },
      'NetworksKnown',
      'InvalidMap',
      /map.yaml/,
    ],
    [
      'a typo in the map',
      { networks: { ...networks, mapFault: 'NUMA node 7 of physnet a is not on this host' } },
      'NetworkMapValid',
      'InvalidMap',
      /NUMA node 7/,
    ],
    ['drift', { networks: { ...networks, drift: ['physnet a: …'] } }, 'NetworkMapAgrees', 'Drift', /physnet a/],
    ['no carrier', { networks: { ...networks, down: new Set(['a']) } }, 'UplinksUp', 'NoCarrier', /physnet a/],
    ['the tunnel’s', { networks: { ...networks, down: new Set([undefined]) } }, 'UplinksUp', 'NoCarrier', /tunnel/],
    ['no PMD near', { networks: { ...networks, unpolled: ['a far'] } }, 'NetworksPolledNear', 'NoPollingCPU', /a far/],
    [
      'a second writer of the masks',
      { ovsProblems: ['another process also sets the CPUs'] },
      'OpenVswitchInPlace',
      'Incomplete',
      /another process/,
    ],
    ['a failed duty', { failedDuties: ['networks'] }, 'DutiesRunning', 'Failed', /duty networks failed/],
  ];
  for (const [name, change, type, reason, message] of doubts) {
    it(`reports with a condition: ${name}`, () => {
      const conditions = buildStatus({ ...inputs, ...change }, undefined, 'now')?.conditions;
      const condition = conditions?.find((one) => one.type === type);
      assert.deepEqual([condition?.status, condition?.reason], ['False', reason]);
      assert.match(condition?.message ?? '', message);
    });
  }

  it('reports differences between the configuration file and the running kubelet', () => {
    const kubeletConfig = {
      source: 'config.yaml',
      cpuManager: { policy: 'none', options: {} },
      topologyManager: { policy: 'none', scope: 'container', options: {} },
      memoryManager: { policy: 'None' },
      reservedMemory: new Map(),
      reserved: CpuSet.parse('0-1'),
      maxPods: 110,
      featureGates: {},
    };
    const condition = buildStatus({ ...inputs, kubeletConfig }, undefined, 'now')?.conditions?.[1];
    assert.match(
      condition?.message ?? '',
      /says cpuManagerPolicy none.*static; .*says reservedSystemCPUs 0-1.*reserves 0/,
    );
  });

  it('merge patches turn the old value into the new one, and are omitted for equal values', () => {
    const json = fc.letrec<{ value: PatchValue; object: Record<string, PatchValue> }>((tie) => ({
      value: fc.oneof(fc.string(), fc.integer(), fc.array(fc.string(), { maxLength: 2 }), tie('object')),
      object: fc.dictionary(fc.constantFrom('a', 'b', 'c'), tie('value'), { maxKeys: 3, noNullPrototype: true }),
    })).object;
    const apply = (target: PatchValue | undefined, patch: PatchValue): PatchValue => {
      if (typeof patch !== 'object' || patch === null || Array.isArray(patch)) return patch;
      const isObject = typeof target === 'object' && target !== null && !Array.isArray(target);
      const result: Record<string, PatchValue> = isObject ? { ...(target as Record<string, PatchValue>) } : {};
      for (const [key, value] of Object.entries(patch as Record<string, PatchValue>)) {
        if (value === null) delete result[key];
        else result[key] = apply(result[key], value);
      }
      return result;
    };
    fc.assert(
      fc.property(json, json, (from, to) => {
        const patch = createMergePatch(from, to);
        assert.deepEqual(patch === undefined ? from : apply(from, patch), to);
        assert.equal(createMergePatch(to, to), undefined);
      }),
    );
  });
});

describe('publishing the report', () => {
  let api: FakeApi;
  let stop: AbortController;
  let now: ReportInputs;
  let reading: () => Promise<void>;
  let changed: () => void;
  let logged: ReturnType<typeof recordingLogger>;
  let metrics: ReturnType<typeof testMetrics>;
  let following: number;
  let done: Promise<void>;

  beforeEach(() => {
    api = createFakeApi(NODE);
    stop = new AbortController();
    now = inputs;
    reading = async () => {};
    following = 0;
    logged = recordingLogger();
  });
  afterEach(async () => {
    stop.abort();
    await done;
  });
  const run = () => {
    metrics = testMetrics();
    done = createReport({
      client: api.client,
      nodeName: NODE,
      inputs: async () => {
        await reading();
        return now;
      },
      subscribe: (listener) => {
        changed = listener;
        following++;
        return () => void following--;
      },
      log: logged.log,
      metrics,
    }).run(stop.signal);
  };
  const published = () => api.objects.get(PATH) as unknown as NodeTopology | undefined;
  const reserve = (cpus: string) => {
    now = { ...inputs, view: { ...knownView, reserved: CpuSet.parse(cpus) } };
    changed();
  };
  const reservedIs = (cpus: string) => eventually(() => published()?.status?.reserved === cpus, `reserved ${cpus}`);

  it('creates the object, owned by the node, and writes its status', async () => {
    run();
    await reservedIs('0');
    assert.equal(published()?.metadata.ownerReferences?.[0]?.uid, 'node-uid-1');
    assert.equal(published()?.status?.kubeletVersion, 'v1.36.0');
  });

  it('has devices once the Node has them, and then counts those that are not healthy', async () => {
    const devices = [{ resource: 'a/vf', groups: [{ total: 4, free: 4 }] }];
    now = { ...inputs, view: { ...knownView, devices } };
    run();
    await reservedIs('0');
    assert.equal(published()?.status?.devices, undefined);
    const nodePath = `/api/v1/nodes/${NODE}`;
    const node = api.objects.get(nodePath) as { status?: object };
    const amounts = { capacity: { 'a/vf': '6' }, allocatable: { 'a/vf': '4' } };
    api.objects.set(nodePath, { ...node, status: { ...node.status, ...amounts } });
    await eventually(() => published()?.status?.devices !== undefined, 'devices');
    assert.deepEqual(published()?.status?.devices, [{ ...devices[0], unhealthy: 2 }]);
  });

  it('writes many changes in 200 ms once, and writes nothing without a change', async () => {
    run();
    await reservedIs('0');
    api.writes.length = 0;
    for (let i = 1; i <= 50; i++) reserve(`0-${i}`);
    await reservedIs('0-50');
    await new Promise((resolve) => setTimeout(resolve, 300));
    for (let i = 0; i < 5; i++) changed();
    await new Promise((resolve) => setTimeout(resolve, 300));
    assert.deepEqual(api.writes, [`PATCH ${PATH}/status`]);
  });

  it('writes endless changes with slow reads at most every 200 ms, and the last change in any case', async () => {
    const sent: number[] = [];
    const { patch } = api.client;
    api.client.patch = (...args) => {
      sent.push(performance.now());
      return patch(...args);
    };
    reading = () => new Promise((resolve) => setTimeout(resolve, sent.length % 2 === 0 ? 150 : 0));
    run();
    await reservedIs('0');
    for (let i = 1; i <= 60; i++) {
      reserve(`0-${i}`);
      await new Promise((resolve) => setTimeout(resolve, 25));
    }
    await reservedIs('0-60');
    const gaps = sent.slice(1).map((at, i) => at - (sent[i] ?? 0));
    assert.ok(sent.length > 3, `${sent.length} writes`);
    // Timers may fire a millisecond early.
    assert.ok(Math.min(...gaps) > 198, `${gaps.map(Math.round)} ms`);
  });

  it('omits a field that the API server’s schema does not have, and does not write it repeatedly', async () => {
    const { patch } = api.client;
    api.client.patch = async (...args) => {
      const object = (await patch(...args)) as unknown as NodeTopology;
      const stored = api.objects.get(PATH) as unknown as NodeTopology;
      delete stored.status?.distances;
      delete object.status?.distances;
      return object;
    };
    run();
    await reservedIs('0');
    await eventually(() => api.writes.length > 0, 'written');
    await new Promise((resolve) => setTimeout(resolve, 400));
    api.writes.length = 0;
    for (let i = 0; i < 5; i++) {
      changed();
      await new Promise((resolve) => setTimeout(resolve, 120));
    }
    assert.deepEqual(api.writes, []);
    reserve('0-1');
    await reservedIs('0-1');
    assert.deepEqual(api.writes, [`PATCH ${PATH}/status`]);
  });

  it('removes outdated entries', async () => {
    now = { ...inputs, pmdCpus: CpuSet.parse('3') };
    run();
    await eventually(() => published()?.status?.pmdCPUs === '3', 'PMD CPUs');
    now = inputs;
    changed();
    await eventually(() => published()?.status?.pmdCPUs === undefined, 'no PMD CPUs');
  });

  it('writes nothing while nothing is known', async () => {
    now = { ...inputs, view: UNKNOWN_VIEW };
    run();
    await eventually(() => published() !== undefined, 'the object');
    assert.equal(published()?.status, undefined);
    now = inputs;
    changed();
    await reservedIs('0');
  });

  it('keeps the last change while the API server is down', async () => {
    run();
    await reservedIs('0');
    api.failing = true;
    reserve('0-1');
    await eventually(() => logged.said('publishing the node topology failed; retrying'), 'said');
    reserve('0-2');
    api.failing = false;
    await reservedIs('0-2');
  });

  it('creates a deleted object again', async () => {
    run();
    await reservedIs('0');
    api.objects.delete(PATH);
    reserve('0-1');
    await reservedIs('0-1');
  });

  for (const [what, awaySeconds] of [
    ['it was deleted', 0],
    ['its definition, which was deleted for 40 s, is applied again', 40],
  ] as const) {
    it(`returns within 30 s after ${what}, with a line in the log; until then it is read every 15 to 20 s`, async () => {
      mock.timers.enable({ apis: ['setTimeout'] });
      let second = 0;
      mock.method(performance, 'now', () => second * 1000);
      const pass = async (seconds: number) => {
        for (let i = 0; i < seconds * 4; i++) {
          second += 0.25;
          mock.timers.tick(250);
          for (let turn = 0; turn < 10; turn++) await new Promise((resolve) => setImmediate(resolve));
        }
      };
      let reads = 0;
      let isDefined = true;
      const { get, create } = api.client;
      api.client.get = (path, ...more) => {
        if (path === PATH) reads++;
        return get(path, ...more);
      };
      api.client.create = (path, ...more) =>
        isDefined ? create(path, ...more) : Promise.reject(new KubeError(404, 'NotFound', 'no such resource'));
      try {
        run();
        await pass(2);
        assert.equal(published()?.status?.reserved, '0');
        reads = 0;
        await pass(120);
        assert.ok(reads >= 6 && reads <= 8, `${reads} reads in 120 s`);
        api.objects.delete(PATH);
        isDefined = awaySeconds === 0;
        await pass(awaySeconds);
        isDefined = true;
        await pass(30);
        assert.equal(published()?.status?.reserved, '0');
        assert.ok(logged.said('the NodeTopology was deleted; publishing it again'));
      } finally {
        mock.timers.reset();
        mock.reset();
      }
    });
  }

  const outcomes = async () =>
    Object.fromEntries((await metrics.reportWrites.get()).values.map(({ labels, value }) => [labels.outcome, value]));

  it('counts and logs each write and each failure, and its end', async () => {
    run();
    await reservedIs('0');
    assert.equal(following, 1);
    await eventually(() => logged.lines.length === 1, 'said');
    const [{ level, msg, reserved, assignments } = {}] = logged.lines;
    assert.deepEqual([level, msg, reserved, assignments], [30, 'published node topology', '0', 2]);
    assert.deepEqual(await outcomes(), { written: 1 });
    api.failing = true;
    reserve('0-1');
    await eventually(async () => ((await outcomes())['failed'] ?? 0) > 0, 'a failure');
    api.failing = false;
    await reservedIs('0-1');
    await eventually(() => logged.said('recovered'), 'recovered');
    const failures = logged.lines.filter((line) => line.msg === 'publishing the node topology failed; retrying');
    assert.equal(failures.length, 1);
    stop.abort();
    await done;
    assert.equal(following, 0);
    assert.equal((await outcomes())['written'], 2);
  });

  it('logs once which fields the API server dropped, with the next step', async () => {
    const { patch } = api.client;
    api.client.patch = async (...args) => {
      const object = (await patch(...args)) as unknown as NodeTopology;
      delete (api.objects.get(PATH) as unknown as NodeTopology).status?.distances;
      delete object.status?.distances;
      return object;
    };
    run();
    await reservedIs('0');
    reserve('0-1');
    await reservedIs('0-1');
    await eventually(() => logged.lines.filter(({ msg }) => msg === 'published node topology').length === 2, 'twice');
    const warnings = logged.lines.filter((line) => line.level === 40);
    assert.deepEqual(
      warnings.map(({ dropped, hint }) => [dropped, hint]),
      [['distances', 'kubectl apply --server-side -f manifests/base/crd/nodetopologies.yaml']],
    );
  });

  const kubeletConfig = {
    source: 'config.yaml',
    cpuManager: { policy: 'static', options: {} },
    topologyManager: { policy: 'none', scope: 'container', options: {} },
    memoryManager: { policy: 'None' },
    reservedMemory: new Map(),
    reserved: undefined,
    maxPods: 110,
    featureGates: {},
  };
  const looks: [string, Partial<ReportInputs>, number][] = [
    ['all is known', { kubeletConfig }, 18],
    ['something is unknown', {}, 10],
  ];
  for (const [name, change, seconds] of looks) {
    it(`looks again after about ${seconds} s without a notification while ${name}`, async () => {
      const { setTimeout: timeout } = globalThis;
      const waits: { milliseconds: number; work: () => void }[] = [];
      const delayed = (work: () => void, milliseconds = 0) => {
        if (milliseconds < 5000) return timeout(work, milliseconds);
        waits.push({ milliseconds, work });
        return timeout(() => {}, 0);
      };
      globalThis.setTimeout = delayed as typeof timeout;
      try {
        now = { ...inputs, ...change };
        run();
        await reservedIs('0');
        await eventually(() => waits.length === 1, 'it waits');
        const [{ milliseconds, work }] = waits as [(typeof waits)[0]];
        assert.ok(milliseconds >= seconds * 500 && milliseconds < seconds * 1500, `${milliseconds} ms`);
        now = { ...now, view: { ...knownView, reserved: CpuSet.parse('0-1') } };
        work();
        await reservedIs('0-1');
      } finally {
        globalThis.setTimeout = timeout;
      }
    });
  }
});
