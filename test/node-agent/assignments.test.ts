import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Assignments, verdictOn } from '../../node-agent/assignments/assignments.ts';
import { readCpuClaims } from '../../node-agent/assignments/cpu-claims.ts';
import { UNKNOWN_VIEW } from '../../node-agent/assignments/view.ts';
import { FakeKubelet } from './kubelet-stand-in.ts';
import { eventually, recordingLogger, set, tempDirectories, writeTree } from './support.ts';

let kubelet: FakeKubelet;
let assignments: Assignments;
let codes: string[];
let stop: AbortController;
let logged: ReturnType<typeof recordingLogger>;

function createAssignments(more: { checkpointGrace?: number } = {}): Assignments {
  const { directory: kubeletDir, cdiDir } = kubelet;
  const onFailure = (code: string) => codes.push(code);
  return new Assignments({ kubeletDir, cdiDir, online: () => set('0-7'), log: logged.log, onFailure, ...more });
}

/** Prepares a kubelet's directory without a kubelet, and an agent's assignments that do not run yet. */
function setUp(): void {
  const temp = tempDirectories();

  beforeEach(() => {
    kubelet = new FakeKubelet(temp());
    kubelet.allocatable = '2-7';
    codes = [];
    logged = recordingLogger();
    stop = new AbortController();
    assignments = createAssignments();
  });
  afterEach(async () => {
    stop.abort();
    await kubelet.stop();
  });
}

const run = () => void assignments.run(stop.signal);
const free = () => assignments.view().free?.toString();
const becomes = (expected: string | undefined) =>
  eventually(() => free() === expected, `free is ${expected}, not ${free()}`);

describe('assignments while the kubelet starts and stops', () => {
  setUp();

  it('notifies subscribers of each rename by its event, long before the periodic check', async () => {
    kubelet.writeCheckpoint('0-7');
    await kubelet.start();
    run();
    await becomes('0-7');
    for (const pool of ['0-6', '0-5', '0-4', '0-3']) {
      kubelet.writeCheckpoint(pool);
      await becomes(pool);
    }
  });

  const runWithoutCheckpoint = async (checkpointGrace: number) => {
    assignments = createAssignments({ checkpointGrace });
    kubelet.pods = { 'ns/vm': { compute: '2-3' } };
    await kubelet.start();
    run();
  };

  it('no checkpoint: the free CPUs are unknown in the grace period', async () => {
    await runWithoutCheckpoint(600);
    await eventually(() => /cannot read/.test(assignments.view().sources.checkpoint ?? ''), 'it has no checkpoint');
    await new Promise((resolve) => setTimeout(resolve, 300));
    assert.equal(free(), undefined);
  });

  it('no checkpoint: PodResources alone decides after the grace period', async () => {
    await runWithoutCheckpoint(0.2);
    await becomes('0-1,4-7');
    assert.match(assignments.view().sources.checkpoint ?? '', /cannot read .*cpu_manager_state/);
    kubelet.pods = {};
    await becomes('0-7');
  });

  it('no checkpoint: a kubelet that starts and lists nothing yet frees no CPU', async () => {
    await runWithoutCheckpoint(2);
    await becomes('0-1,4-7');
    kubelet.pods = {};
    await eventually(() => /lists no containers/.test(assignments.view().sources.podResources ?? ''), 'an empty list');
    assert.deepEqual([free(), assignments.view().owned.toString()], ['0-1,4-7', '2-3']);
    kubelet.pods = { 'ns/vm': { compute: '2-3' } };
    await eventually(() => assignments.view().sources.podResources === undefined, 'the list is there');
    assert.equal(free(), '0-1,4-7');
  });

  it('makes no calls while the node is idle', async () => {
    kubelet.writeCheckpoint('0-7');
    await kubelet.start();
    run();
    await becomes('0-7');
    await new Promise((resolve) => setTimeout(resolve, 200));
    const { calls } = kubelet;
    await new Promise((resolve) => setTimeout(resolve, 1000));
    assert.equal(kubelet.calls, calls);
  });
});

describe('devices of plugins', () => {
  setUp();
  beforeEach(async () => {
    kubelet.writeCheckpoint('0-1,5-7', { u: { compute: '2-3' }, v: { compute: '4' } });
    kubelet.pods = { 'ns/vm': { compute: '2-3' }, 'ns/other': { compute: '4' } };
    kubelet.devices = { 'ns/vm': { 'a/vf': ['vf0'] } };
    list(4);
    await kubelet.start();
  });

  const list = (size: number) => {
    kubelet.allocatableDevices = Array.from({ length: size }, (_, i) => {
      return { resourceName: 'a/vf', deviceIds: [`vf${i}`], topology: { nodes: [{ ID: 1 }] } };
    });
  };
  const counts = () =>
    assignments.view().devices?.map(({ groups }) => groups.map(({ total, free }) => `${free}/${total}`));
  const are = (expected: unknown) =>
    eventually(() => JSON.stringify(counts()) === JSON.stringify(expected), JSON.stringify(expected));
  const pluginsChange = (PodDeviceEntries: unknown = undefined) => {
    const file = join(kubelet.directory, 'device-plugins/kubelet_internal_checkpoint');
    writeFileSync(file, JSON.stringify({ Data: { PodDeviceEntries } }));
  };

  it('are known with the first answer, and follow changes with the kubelet’s file: more devices, those of an init container that ended, fewer, a plugin that died', async () => {
    run();
    await are([['3/4']]);
    const { calls } = kubelet;
    await new Promise((resolve) => setTimeout(resolve, 1000));
    assert.ok(kubelet.calls <= calls + 2, 'an idle kubelet gets no queries after the first ones');
    list(6);
    pluginsChange();
    await are([['5/6']]);
    const entry = { PodUID: 'u', ContainerName: 'init', ResourceName: 'a/vf', DeviceIDs: { 1: ['vf0', 'vf1'] } };
    pluginsChange([entry, { ...entry, PodUID: 'gone', DeviceIDs: { 1: ['vf2'] } }]);
    await are([['4/6']]);
    list(0);
    pluginsChange();
    await are([]);
    assert.deepEqual(codes, []);
  });
});

describe('the state of the memory manager in the kubelet’s directory', () => {
  setUp();

  it('is read with each answer and when its file changes; without the file it is not known', async () => {
    kubelet.writeCheckpoint('0-7');
    await kubelet.start();
    run();
    const problem = () => assignments.view().memory?.problem;
    await eventually(() => /cannot read .*memory_manager_state/.test(problem() ?? ''), 'missing');
    const table = { allocatable: 8, reserved: 0, free: 8 };
    const machineState = { 0: { numberOfAssignments: 0, memoryMap: { memory: table }, cells: [0] } };
    const file = join(kubelet.directory, 'memory_manager_state');
    writeFileSync(file, JSON.stringify({ policyName: 'Static', machineState, checksum: 1 }));
    await eventually(() => problem() === undefined, 'readable');
    assert.deepEqual(assignments.view().memory?.cells.get(0), { blocks: 0, group: '0', free: { memory: 8 } });
    writeFileSync(file, '{"policyName":"Sta');
    await eventually(() => /torn/.test(problem() ?? ''), 'torn');
  });
});

describe('CPUs that dra-driver-cpu gives to claims', () => {
  const UID = '0f6f1d9c-52c1-4c0e-9d5b-3d9a2c7f0001';
  setUp();

  for (const policy of ['none', 'static']) {
    it(`are owned from the driver’s file on, under policy ${policy}, with the name from PodResources`, async () => {
      if (policy === 'none') kubelet.allocatable = '';
      kubelet.writeCheckpoint(policy === 'none' ? '' : '0-7', {}, policy);
      await kubelet.start();
      run();
      await becomes('0-7');
      kubelet.pods = { 'ns/vm': { compute: '' } };
      kubelet.claims = { 'ns/vm': { 'ns/vm-cpus': UID } };
      kubelet.writeClaim(UID, '4-5');
      await becomes('0-3,6-7');
      assert.equal(assignments.view().owned.toString(), '4-5');
      await eventually(() => assignments.view().claims[0]?.name !== undefined, 'the name');
      const [claim] = assignments.view().claims;
      assert.deepEqual([claim?.uid, claim?.cpus.toString()], [UID, '4-5']);
      assert.deepEqual(claim?.name, { namespace: 'ns', name: 'vm-cpus' });
      kubelet.writeClaim(UID, undefined);
      await becomes('0-7');
    });
  }

  it('stay owned while a file is torn, and no CPU becomes free then', async () => {
    kubelet.writeClaim(UID, '4-5');
    kubelet.writeCheckpoint('0-1,4-7', { u: { compute: '2-3' } });
    kubelet.pods = { 'ns/vm': { compute: '2-3' } };
    await kubelet.start();
    run();
    await becomes('0-1,6-7');
    const file = join(kubelet.cdiDir, `dra.k8s.io-cpu_claim-${UID}.json`);
    writeFileSync(file, '{"kind":"dra.k8s.io/cpu","dev');
    await eventually(() => assignments.view().sources.claims !== undefined, 'the problem');
    kubelet.pods = {};
    kubelet.writeCheckpoint('0-7');
    await eventually(() => assignments.view().assignments.length === 0, 'the pod has ended');
    assert.equal(free(), '0-1,6-7');
    assert.match(assignments.view().problems.join(), /dra\.k8s\.io-cpu_claim/);
    assert.ok(logged.said('CPUs of claims unusable; keeping the last known ones'));
    kubelet.writeClaim(UID, '4-5');
    await becomes('0-3,6-7');
  });
});

describe('the CDI files of dra-driver-cpu', () => {
  const temp = tempDirectories();
  const spec = (kind: string, ...devices: readonly (readonly [name: string, env: string])[]) =>
    JSON.stringify({ kind, devices: devices.map(([name, env]) => ({ name, containerEdits: { env: [env] } })) });
  const CPU = 'dra.k8s.io/cpu';
  const BOTH = spec(CPU, ['claim-b', 'DRA_CPUSET_b=3'], ['claim-a', 'DRA_CPUSET_a=1-2']);

  for (const [what, files, expected] of [
    ['no directory', undefined, []],
    ['other vendors’ files', { 'nvidia.yaml': 'x', 'nvidia.json': '{' }, []],
    ['a file of another kind', { 'dra.cpu.json': spec('x/y', ['claim-a', 'DRA_CPUSET_a=1']) }, []],
    ['one file for all claims', { 'dra.cpu.json': BOTH }, ['a 1-2', 'b 3']],
    ['no claims', { 'dra.cpu.json': spec(CPU) }, []],
    ['a claim without CPUs', { 'dra.cpu.json': spec(CPU, ['claim-a', 'PATH=/']) }, /device claim-a has no CPUs/],
    ['CPUs of another claim', { 'dra.cpu.json': spec(CPU, ['claim-a', 'DRA_CPUSET_b=1']) }, /device claim-a has no/],
    ['no CPU list', { 'dra.cpu.json': spec(CPU, ['claim-a', 'DRA_CPUSET_a=dynamic']) }, /dynamic/],
  ] as const) {
    it(`${what}: ${expected instanceof RegExp ? 'a problem' : expected.join(', ') || 'none'}`, () => {
      const directory = join(temp(), 'cdi');
      if (files !== undefined) writeTree(directory, files);
      const read = () => readCpuClaims(directory).map(({ uid, cpus }) => `${uid} ${cpus}`);
      if (expected instanceof RegExp) assert.throws(read, expected);
      else assert.deepEqual(read(), expected);
    });
  }
});

const listing = (listed: readonly string[], allocatable = '0-7') => ({
  devices: [],
  claimNames: new Map(),
  memory: { cells: new Map() },
  allocatable: set(allocatable),
  listed: listed.map((cpus) => ({ namespace: 'n', podName: 'p', container: 'c', cpus: set(cpus), devices: [] })),
});
/** @param holds the CPUs of each assignment; those that end with `?` have no pod name yet */
const view = (holds: readonly string[], problems: readonly string[] = []) => ({
  ...UNKNOWN_VIEW,
  problems,
  memory: { cells: new Map() },
  assignments: holds.map((text, i) => ({
    podUID: `${i}`,
    container: 'c',
    cpus: set(text.replace('?', '')),
    name: text.endsWith('?') ? undefined : { namespace: 'n', podName: 'p' },
  })),
});

describe('the next query of the kubelet', () => {
  it('comes later when the kubelet has listed no pods for long', () => {
    assert.equal(verdictOn(listing([]), { ...view(['3']), memory: undefined }, false), 'later');
  });

  for (const [what, answer, seen, expected] of [
    ['comes soon without an answer', undefined, view([], ['no answer']), 'soon'],
    ['comes soon before the CPU manager has started', listing([], ''), view([], ['no CPUs']), 'soon'],
    ['comes later if another source has a problem', listing([]), view([], ['torn file']), 'later'],
    ['comes later if every container has its CPUs and its name', listing(['2-3']), view(['2-3', '4-5']), 'later'],
    ['comes later while no owner has a name', listing(['4']), view(['3?']), 'later'],
    ['comes soon while the kubelet lists no pods yet', listing([]), { ...view(['3']), memory: undefined }, 'soon'],
  ] as const) {
    it(what, () => assert.equal(verdictOn(answer, seen, true), expected));
  }
});
