import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { isSwitchInOrder } from '../../cli/agent/ask.ts';
import { createCommand } from '../../cli/ovs/command.ts';
import { ovsStatus } from '../../model/agent-status.ts';
import { CpuSet } from '../../model/cpu-set.ts';
import { OvsAffinity } from '../../node-agent/ovs-affinity/ovs-affinity.ts';
import { AffinityEvents } from '../../node-agent/ovs-affinity/reporting.ts';
import { CgroupTree, type ContainerCpus } from '../../node-agent/processes/cgroup-tree.ts';
import { procThreads } from '../../node-agent/processes/proc.ts';
import { needs, skipFor, skipWithout } from '../support/parts.ts';
import { askAgent } from '../support/run-command.ts';
import { DAEMONS, type MonitoredOvs, startMonitoredOvs } from './ovs-affinity/monitored-ovs-stage.ts';
import { makePodCgroup, watchMasks } from './ovs-affinity/real-stage.ts';
import { all, countingAffinity, cpus, first, machine, ovsParts, rest } from './ovs-affinity/stage.ts';
import {
  allowedLists,
  eventually,
  recordingEvents,
  settableView,
  startStandIn,
  tempDirectories,
  testMetrics,
} from './support.ts';

describe('a real Open vSwitch under --monitor', function () {
  this.timeout(300_000);
  needs('openVswitch');
  // Ends before its directory is removed: hooks run in the order of their declaration.
  after(async () => real?.stop());
  const temp = tempDirectories();
  let directory: string;
  let real: MonitoredOvs;
  let ovs: OvsAffinity;
  let view: ReturnType<typeof settableView>;
  let counted: ReturnType<typeof countingAffinity>;
  let recorded: ReturnType<typeof recordingEvents>;
  let metrics: ReturnType<typeof testMetrics>;
  /** What runs in the cgroups of containers. */
  let containers: () => ContainerCpus | undefined;
  /** Milliseconds by which the agent’s clock is ahead. */
  let later: number;
  let stop: AbortController;
  let running: Promise<void>;
  let writer: ChildProcess | undefined;

  const masks = () => [...new Set(real.processes().flatMap(allowedLists))].join('|');
  const respawned = async (name: (typeof DAEMONS)[number]) => {
    const before = real.pid(name);
    process.kill(before, 'SIGSEGV');
    await eventually(() => real.pid(name) !== before && real.isUp(name), 'respawned');
  };

  const reasons = () => recorded.events.filter(({ type }) => type === 'Warning').map(({ reason }) => reason);
  const contended = async () => (await metrics.ovsContended.get()).values[0]?.value;
  const displaced = async () =>
    (await metrics.ovsDisplaced.get()).values.reduce((total, { value }) => total + value, 0);

  /** Sets the CPUs of every thread five times per second, whatever they are. */
  const startWriter = (list: string) => {
    const each = DAEMONS.map((name) => `taskset -apc ${list} ${real.pid(name)}`).join('; ');
    writer = spawn('sh', ['-c', `while :; do ${each}; sleep 0.2; done`], { stdio: 'ignore' });
  };
  const endWriter = async () => {
    if (writer === undefined) return;
    const ended = once(writer, 'exit');
    writer.kill('SIGKILL');
    await ended;
    writer = undefined;
    await delay(100);
  };

  before(async function () {
    skipWithout('twoCpus', this);
    directory = temp();
    mkdirSync(join(directory, 'etc'));
    writeFileSync(join(directory, 'etc/enable'), '1');
    real = await startMonitoredOvs(directory);
    await eventually(() => procThreads.list(real.pid('ovs-vswitchd')).length > 5, 'handlers and revalidators');
  });
  beforeEach(() => {
    writeFileSync(join(directory, 'etc/enable'), '1');
    stop = new AbortController();
    view = settableView({ free: machine() });
    counted = countingAffinity();
    recorded = recordingEvents();
    metrics = testMetrics();
    const events = new AffinityEvents({ recorder: recorded.recorder, nodeName: 'n', nowSeconds: () => 0 });
    containers = () => ({ guaranteed: [], others: [] });
    later = 0;
    const parts = { assignments: view, affinity: counted, events, metrics, checkInterval: 0.5 };
    const nowSeconds = () => (performance.now() + later) / 1000;
    ovs = new OvsAffinity(ovsParts(directory, { ...parts, nowSeconds, containers: () => containers() }));
    running = ovs.run(stop.signal);
  });
  afterEach(async () => {
    await endWriter();
    rmSync(join(directory, 'etc/enable'), { force: true });
    await eventually(() => !ovs.status().enabled, 'turned off');
    stop.abort();
    await running;
  });

  it('a program that keeps writing causes an Event, metrics, a status and an exit code, and is tolerated without owned CPUs', async () => {
    let changes = 0;
    ovs.subscribe(() => changes++);
    view.free(first());
    startWriter(all());
    await eventually(async () => (await contended()) === 1, 'seen');
    assert.deepEqual(reasons(), ['OvsAffinityContended']);
    assert.ok((await displaced()) > 5);
    assert.ok(changes > 0, 'the report hears of it');
    const status = ovsStatus.parse(ovs.status());
    assert.match(ovs.status().problems.join(), /another process also sets the CPUs/);
    assert.equal(isSwitchInOrder(status), false);
    const { stdout } = await askAgent(createCommand(), ['status'], { '/ovs': status });
    assert.match(stdout, /^! another process also sets .*ovnkube-node does this if .*enable/m);
    assert.match(ovs.problems().join(), /another process/);
    const isLeft = () => DAEMONS.every((name) => allowedLists(real.pid(name)).every((list) => list === all()));
    await eventually(isLeft, 'as the other has set them');
    counted.sets = 0;
    await delay(2500);
    assert.equal(counted.sets, 0, 'not fought');
  });

  it('the threads still leave CPUs that containers own, and the start of a container still waits for that', async () => {
    view.free(first());
    startWriter(all());
    await eventually(async () => (await contended()) === 1, 'seen');
    await endWriter();
    view.free(first(), rest());
    assert.equal(masks(), first());
    view.free(all());
    assert.equal(masks(), first(), 'nothing is taken back from what the other has set');
    view.free(all(), '');
    await ovs.vacate(cpus(rest()));
    assert.equal(masks(), first());
  });

  it('the threads never use a container’s CPUs when the kubelet has lost its state, until the container ends', async function () {
    const cgroup = makePodCgroup(`plumbline-test-${process.pid}`);
    if (cgroup === undefined) return skipFor({ name: 'cgroups with cpusets', install: 'run as root' }, this);
    const container = await startStandIn('dpdk-app', 1, join(directory, 'app.pid'));
    try {
      cgroup.run(container.pid, rest());
      containers = new CgroupTree(cgroup.root).containers;
      view.free(first(), rest());
      const daemons = DAEMONS.map((name) => real.pid(name));
      const sampler = await watchMasks(cpus(rest()).first!, daemons);
      view.free(all());
      later = 100_000;
      await delay(1000);
      await sampler.sawNone(100);
      assert.match(ovs.status().why.join(), /free in the kubelet’s state, but containers that own them may still run/);
      await container.stop();
      later = 200_000;
      await eventually(() => masks() === all(), 'grown once it has ended');
    } finally {
      await container.stop();
      cgroup.remove();
    }
  });

  it('restarts a crashed daemon on the right CPUs: none of its threads is ever on another', async () => {
    view.free(first());
    const other = cpus(rest()).first!;
    const old = real.pid('ovs-vswitchd');
    const begun = performance.now();
    process.kill(old, 'SIGSEGV');
    let sampled = 0;
    // Each new thread is checked as soon as it exists, until the daemon works again.
    while (performance.now() - begun < 60_000) {
      const pid = real.pid('ovs-vswitchd');
      const lists = pid === old || pid === 0 ? [] : listsOf(pid);
      for (const list of lists) {
        assert.equal(list, first());
        sampled++;
      }
      if (lists.length > 5) break;
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
    assert.ok(sampled > 5, `${sampled} samples`);
    const sampler = await watchMasks(other, [real.pid('ovs-vswitchd')]);
    await new Promise((resolve) => setTimeout(resolve, 300));
    await sampler.sawNone();
    await eventually(() => ovs.status().processes.some(({ pid }) => pid === real.pid('ovs-vswitchd')), 'managed');
  });

  it('restores the monitor if disabled while the daemon is down, and so the next daemon', async () => {
    view.free(first());
    const monitor = real.monitor('ovsdb-server');
    // The first time, the daemon restarts at once. The second time, its monitor waits.
    await respawned('ovsdb-server');
    process.kill(real.pid('ovsdb-server'), 'SIGSEGV');
    await eventually(() => !real.isUp('ovsdb-server'), 'down');
    rmSync(join(directory, 'etc/enable'));
    await eventually(() => !ovs.status().enabled, 'turned off');
    assert.deepEqual(allowedLists(monitor), [all()]);
    await eventually(() => real.isUp('ovsdb-server'), 'back');
    assert.deepEqual([...new Set(allowedLists(real.pid('ovsdb-server')))], [all()]);
  });

  it('leaves poll mode drivers alone and keeps all other threads off their CPUs', async () => {
    const polled = cpus(rest()).first!;
    const port = ['add-port', 'plumb1', 'poll0', '--', 'set', 'interface', 'poll0', 'type=dummy-pmd'];
    real.vsctl('set', 'Open_vSwitch', '.', `other_config:pmd-cpu-mask=${(1 << polled).toString(16)}`, '--', ...port);
    const polling = () =>
      ovs.status().processes.flatMap(({ threads }) => threads.filter(({ name }) => /^pmd-c/.test(name)));
    await eventually(() => polling().length === 1, 'a poll mode driver');
    view.free(all());
    const ordinary = ovs
      .status()
      .processes.flatMap(({ threads }) => threads)
      .filter(({ note }) => note !== 'pmd');
    const without = String(machine().minus(CpuSet.of([polled])));
    assert.deepEqual([...new Set(ordinary.map(({ allowed }) => allowed))], [without]);
    const [{ allowed, desired, note }] = polling() as [ReturnType<typeof polling>[number]];
    assert.deepEqual([allowed, desired, note], [String(polled), null, 'pmd']);
    await ovs.vacate(CpuSet.of([polled]));
    view.free(without, String(polled));
    assert.match(ovs.status().problems.join(), /poll mode drivers run on CPUs \d+, which containers own/);
    assert.equal(polling()[0]?.allowed, String(polled));
    real.vsctl('del-port', 'poll0', '--', 'remove', 'Open_vSwitch', '.', 'other_config', 'pmd-cpu-mask');
    await eventually(() => polling().length === 0, 'gone');
  });
});

/** Allowed CPUs of a process that may still be starting, or may have ended. */
function listsOf(pid: number): string[] {
  try {
    return allowedLists(pid);
  } catch {
    return [];
  }
}
