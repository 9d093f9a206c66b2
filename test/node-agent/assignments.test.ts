import assert from 'node:assert/strict';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { status } from '@grpc/grpc-js';
import { RpcError } from '../../kube/kubelet-api/handlers.ts';
import { CpuSet } from '../../model/cpu-set.ts';
import { type Assignments, createAssignments } from '../../node-agent/assignments/assignments.ts';
import { createFakeKubelet, type FakeKubelet } from './fake-kubelet.ts';
import { eventually, recordingLogger, tempDirectories } from './support.ts';

let kubelet: FakeKubelet;
let assignments: Assignments;
let codes: string[];
let stop: AbortController;
let logged: ReturnType<typeof recordingLogger>;

/** A kubelet's directory without a kubelet, and an agent's view of it that does not look yet. */
function setUp(): void {
  const temp = tempDirectories();

  beforeEach(() => {
    kubelet = createFakeKubelet(temp());
    kubelet.allocatable = '2-7';
    codes = [];
    logged = recordingLogger();
    stop = new AbortController();
    assignments = createAssignments({
      kubeletDir: kubelet.directory,
      online: () => CpuSet.parse('0-7'),
      log: logged.log,
      onFailure: (code) => codes.push(code),
    });
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

describe('assignments from a kubelet’s files and sockets', () => {
  setUp();

  it('both sources: assignments with names, reserved, free', async () => {
    kubelet.writeCheckpoint('0-1,4-7', { u: { compute: '2-3' } });
    kubelet.pods = { 'ns/vm': { compute: '2-3' } };
    await kubelet.start();
    run();
    await becomes('0-1,4-7');
    const { reserved, assignments: list, policy } = assignments.view();
    assert.equal(reserved?.toString(), '0-1');
    assert.equal(policy, 'static');
    assert.deepEqual(
      list.map(({ podUID, name }) => [podUID, name]),
      [['u', { namespace: 'ns', podName: 'vm' }]],
    );
  });

  it('each rename reaches subscribers by its event, long before the safety tick', async () => {
    kubelet.writeCheckpoint('0-7');
    await kubelet.start();
    run();
    await becomes('0-7');
    for (const pool of ['0-6', '0-5', '0-4', '0-3']) {
      kubelet.writeCheckpoint(pool);
      await eventually(() => free() === pool, `free is ${pool}`, 2);
    }
  });

  it('a torn file: said with what to do, the last good kept, no CPU becomes free; a whole one is read again', async () => {
    kubelet.writeCheckpoint('0-1,4-7', { u: { compute: '2-3' } });
    await kubelet.start();
    run();
    await becomes('0-1,4-7');
    const file = join(kubelet.directory, 'cpu_manager_state');
    for (const torn of ['', '{"policyName":"static","defaultCpuSet":"0-7","entr', '\0\0\0\0', 'null']) {
      writeFileSync(file, torn);
      await eventually(() => assignments.view().problems.length > 0, 'the problem is seen');
      assert.equal(free(), '0-1,4-7', torn);
      assert.equal(assignments.view().assignments.length, 1);
    }
    const line = logged.lines.find(({ msg }) => /keeping what was last known/.test(String(msg)));
    assert.match(String(line?.hint), /restart the kubelet/);
    kubelet.writeCheckpoint('0-7');
    await becomes('0-7');
    assert.deepEqual(assignments.view().problems, []);
  });
});

describe('assignments while the kubelet comes and goes', () => {
  setUp();

  it('started before the kubelet: nothing is free until everything is there', async () => {
    rmSync(join(kubelet.directory, 'pod-resources'), { recursive: true });
    run();
    await eventually(() => codes.includes('unavailable'), 'the socket is missed');
    assert.equal(free(), undefined);
    kubelet = Object.assign(createFakeKubelet(kubelet.directory), { allocatable: '' });
    await kubelet.start();
    kubelet.writeCheckpoint('0-1,4-7', { u: { compute: '2-3' } });
    await eventually(() => assignments.view().assignments.length === 1, 'the checkpoint is read');
    await eventually(() => /not started/.test(assignments.view().problems.join()), 'the CPU manager has not started');
    assert.equal(free(), undefined);
    kubelet.allocatable = '2-7';
    await becomes('0-1,4-7');
  });

  it('the kubelet goes and comes: held while it is away', async () => {
    kubelet.writeCheckpoint('0-1,4-7', { u: { compute: '2-3' } });
    await kubelet.start();
    run();
    await becomes('0-1,4-7');
    await kubelet.stop();
    kubelet.writeCheckpoint('0-7');
    await eventually(() => assignments.view().problems.length > 0, 'its absence is seen');
    assert.equal(free(), '0-1,4-7');
    assert.ok(logged.said('the kubelet cannot be asked, keeping what was last known; trying again'));
    await kubelet.start();
    await becomes('0-7');
  });

  it('ResourceExhausted: backs off instead of asking harder', async () => {
    kubelet.behaviour = () => {
      throw new RpcError(status.RESOURCE_EXHAUSTED, 'rate limit');
    };
    kubelet.writeCheckpoint('0-7');
    await kubelet.start();
    run();
    await new Promise((resolve) => setTimeout(resolve, 1000));
    assert.ok(codes.every((code) => code === 'exhausted'));
    assert.ok(kubelet.calls >= 1 && kubelet.calls <= 6, `${kubelet.calls} calls in the first second`);
    kubelet.behaviour = () => {};
    await becomes('0-7');
  });

  it('idle: asks nothing', async () => {
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
