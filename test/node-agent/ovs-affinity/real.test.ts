import assert from 'node:assert/strict';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { CpuSet } from '../../../model/cpu-set.ts';
import { askDatapaths, registerDatapathMetrics } from '../../../node-agent/open-vswitch/datapath-metrics.ts';
import { createOvsAffinity, type OvsAffinity } from '../../../node-agent/ovs-affinity/ovs-affinity.ts';
import { procThreads } from '../../../node-agent/processes/threads.ts';
import { createLogger } from '../../../runtime/log.ts';
import { Registry } from '../../../runtime/metrics.ts';
import { needs, skipWithout } from '../../support/parts.ts';
import { allowedLists, eventually, tempDirectories } from '../support.ts';
import { isAlive, type MonitoredOvs, startMonitoredOvs } from './monitored-ovs.ts';
import { watchMasks } from './sampler.ts';
import { all, cpus, first, machine, ovsParts, rest, settableView } from './stage.ts';

describe('a real Open vSwitch under --monitor', function () {
  this.timeout(300_000);
  needs('openVswitch');
  // Ends before its directory does: hooks run in the order in which they are named.
  after(async () => real?.stop());
  const temp = tempDirectories();
  let directory: string;
  let real: MonitoredOvs;
  let ovs: OvsAffinity;
  let view: ReturnType<typeof settableView>;
  let stop: AbortController;
  let running: Promise<void>;

  const DAEMONS = ['ovs-vswitchd', 'ovsdb-server'] as const;
  const processes = () => DAEMONS.flatMap((name) => [real.pid(name), real.monitor(name)]);
  const masks = () => [...new Set(processes().flatMap(allowedLists))].join('|');
  const respawned = async (name: (typeof DAEMONS)[number]) => {
    const before = real.pid(name);
    process.kill(before, 'SIGSEGV');
    await eventually(() => real.pid(name) !== before && real.isUp(name), 'respawned');
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
    ovs = createOvsAffinity(ovsParts(directory, { assignments: view, checkInterval: 0.5 }));
    running = ovs.run(stop.signal);
  });
  afterEach(async () => {
    rmSync(join(directory, 'etc/enable'), { force: true });
    await eventually(() => !ovs.status().enabled, 'turned off');
    stop.abort();
    await running;
  });

  it('monitors are moved with their daemons, and shown', () => {
    view.free(first());
    assert.equal(masks(), first());
    assert.deepEqual(
      ovs.status().processes.map(({ name, role }) => `${name} ${role}`),
      DAEMONS.flatMap((name) => [`${name} daemon`, `${name} monitor`]),
    );
  });

  it('a daemon that crashes comes back on the right CPUs: no thread of it is ever on another', async () => {
    view.free(first());
    const other = cpus(rest()).first!;
    const old = real.pid('ovs-vswitchd');
    const begun = performance.now();
    process.kill(old, 'SIGSEGV');
    let sampled = 0;
    // Each new thread is looked at as soon as there is one, until the daemon works again.
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

  it('disabled while a daemon is down: its monitor is given back what it had, and so the next daemon', async () => {
    view.free(first());
    const monitor = real.monitor('ovsdb-server');
    // The first time it comes back at once, after the second its monitor waits.
    await respawned('ovsdb-server');
    process.kill(real.pid('ovsdb-server'), 'SIGSEGV');
    await eventually(() => !real.isUp('ovsdb-server'), 'down');
    rmSync(join(directory, 'etc/enable'));
    await eventually(() => !ovs.status().enabled, 'turned off');
    assert.deepEqual(allowedLists(monitor), [all()]);
    await eventually(() => real.isUp('ovsdb-server'), 'back');
    assert.deepEqual([...new Set(allowedLists(real.pid('ovsdb-server')))], [all()]);
  });

  it('killed with a signal that its monitor takes for an end: managed again once it is started', async () => {
    view.free(first());
    const monitor = real.monitor('ovs-vswitchd');
    process.kill(real.pid('ovs-vswitchd'), 'SIGKILL');
    await eventually(() => !isAlive(monitor), 'the monitor has ended too');
    await eventually(() => /ovs-vswitchd is not managed/.test(ovs.status().problems.join()), 'said');
    real.startAgain('ovs-vswitchd');
    await eventually(() => masks() === first(), 'every thread and the new monitor');
  });

  it('turned off: each thread has its own mask back', async () => {
    view.free(first());
    assert.equal(masks(), first());
    rmSync(join(directory, 'etc/enable'));
    await eventually(() => masks() === all(), 'as before');
    writeFileSync(join(directory, 'etc/enable'), '1');
    await eventually(() => masks() === first(), 'on again');
  });

  it('leaves poll mode drivers alone, and no other thread gets their CPUs', async () => {
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
    const without = machine()
      .minus(CpuSet.of([polled]))
      .toString();
    assert.deepEqual([...new Set(ordinary.map(({ allowed }) => allowed))], [without]);
    assert.deepEqual(
      polling().map(({ allowed, wanted, note }) => ({ allowed, wanted, note })),
      [{ allowed: String(polled), wanted: null, note: 'pmd' }],
    );
    await ovs.vacate(CpuSet.of([polled]));
    view.free(without, String(polled));
    assert.match(ovs.status().problems.join(), /poll mode drivers run on CPUs \d+, which containers own/);
    assert.equal(polling()[0]?.allowed, String(polled));
    real.vsctl('del-port', 'poll0', '--', 'remove', 'Open_vSwitch', '.', 'other_config', 'pmd-cpu-mask');
    await eventually(() => polling().length === 0, 'gone');
  });

  it('what a respawned daemon is given back is what its monitor had before', async () => {
    view.free(first());
    await respawned('ovsdb-server');
    await eventually(() => ovs.status().processes.some(({ pid }) => pid === real.pid('ovsdb-server')), 'managed');
    assert.equal(masks(), first());
    rmSync(join(directory, 'etc/enable'));
    await eventually(() => masks() === all(), 'as before');
  });

  it('new handler and revalidator threads are right from the first', async () => {
    view.free(first());
    const sampler = await watchMasks(cpus(rest()).first!, [real.pid('ovs-vswitchd')]);
    const before = procThreads.list(real.pid('ovs-vswitchd')).length;
    real.vsctl('set', 'Open_vSwitch', '.', 'other_config:n-revalidator-threads=5', 'other_config:n-handler-threads=4');
    await eventually(() => procThreads.list(real.pid('ovs-vswitchd')).length > before, 'more threads');
    await sampler.sawNone();
  });

  it('vacate: verified off', async () => {
    view.free(all());
    await ovs.vacate(cpus(rest()));
    assert.equal(masks(), first());
  });

  it('its own counters, as metrics', async () => {
    const [datapath] = await askDatapaths(real.rundir);
    assert.equal(datapath?.datapath, 'netdev@ovs-netdev');
    assert.ok(Number.isInteger(datapath.upcalls) && Number.isInteger(datapath.lost));
    const registry = new Registry();
    registerDatapathMetrics(registry, { rundir: real.rundir, log: createLogger('test', 'silent') });
    const text = await registry.metrics();
    for (const name of ['upcalls_total', 'lost_total', 'flows']) {
      assert.match(text, new RegExp(`plumbline_ovs_datapath_${name}\\{datapath="netdev@ovs-netdev"\\} \\d+`));
    }
    assert.match(text, /plumbline_ovs_datapath_port_drops_total\{datapath="netdev@ovs-netdev",direction="rx"\} \d+/);
    assert.match(text, /plumbline_ovs_datapath_failures_total 0/);
  });
});

/** Allowed CPUs of a process that may still be starting, or be gone. */
function listsOf(pid: number): string[] {
  try {
    return allowedLists(pid);
  } catch {
    return [];
  }
}
