import assert from 'node:assert/strict';
import { mkdirSync, rmSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createAffinity } from '../../../native/affinity.ts';
import { OvsAffinity, type OvsAffinityDeps } from '../../../node-agent/ovs-affinity/ovs-affinity.ts';
import { createAffinityEvents } from '../../../node-agent/ovs-affinity/reporting.ts';
import { procThreads } from '../../../node-agent/processes/proc.ts';
import { needs, skipFor, skipWithout } from '../../support/parts.ts';
import {
  allowedLists,
  eventually,
  recordingLogger,
  replaceFile,
  type StandIn,
  startStandIn,
  tempDirectories,
  testMetrics,
} from '../support.ts';
import { makeCpuset } from './cpuset.ts';
import { all, countingAffinity, cpus, first, machine, ovsParts, recordingEvents, rest, settableView } from './stage.ts';

let directory: string;
let rundir: string;
let enablerFile: string;
let vswitchd: StandIn;
let ovsdb: StandIn;
let ovs: OvsAffinity;
let stop: AbortController;
let running: Promise<void>;
let view: ReturnType<typeof settableView>;
let counted: ReturnType<typeof countingAffinity>;
/** Parts that a test replaces. */
let parts: Partial<OvsAffinityDeps>;
let logged: ReturnType<typeof recordingLogger>;

const masks = () => [...new Set([...allowedLists(vswitchd.pid), ...allowedLists(ovsdb.pid)])];
const onlyOn = (list: string) => eventually(() => masks().join('|') === list, `${list}; ${masks().join('|')}`);
const free = (list: string) => view.free(list);

function start(): void {
  ovs = new OvsAffinity(ovsParts(directory, { affinity: counted, assignments: view, log: logged.log, ...parts }));
  running = ovs.run(stop.signal);
}

/** Two real processes with threads, a run directory with their pidfiles, and a view with all CPUs free. */
function standIns(): void {
  needs('linux');
  const temp = tempDirectories();
  before(function () {
    skipWithout('twoCpus', this);
  });
  beforeEach(async () => {
    directory = temp();
    rundir = join(directory, 'run');
    enablerFile = join(directory, 'etc/enable');
    for (const path of [rundir, join(directory, 'etc')]) mkdirSync(path);
    [vswitchd, ovsdb] = await Promise.all([
      startStandIn('ovs-vswitchd', 6, join(rundir, 'ovs-vswitchd.pid')),
      startStandIn('ovsdb-server', 1, join(rundir, 'ovsdb-server.pid')),
    ]);
    stop = new AbortController();
    logged = recordingLogger();
    counted = countingAffinity();
    parts = {};
    view = settableView({ free: machine() });
  });
  afterEach(async () => {
    stop.abort();
    await running;
    await Promise.all([vswitchd.stop(), ovsdb.stop()]);
  });
}

describe('affinity of real threads', () => {
  standIns();

  it('every thread of both daemons follows each change, and the log has the duration', async () => {
    writeFileSync(enablerFile, '1');
    start();
    for (const list of [first(), all(), rest(), first()]) {
      free(list);
      assert.deepEqual(masks(), [list], 'moved within the event itself');
    }
    const line = logged.lines.findLast(({ msg }) => msg === 'moved OVS threads');
    assert.equal(line?.cpus, first());
    assert.equal(line.threads, allowedLists(vswitchd.pid).length + allowedLists(ovsdb.pid).length);
    assert.ok(Number(line.sinceNoticedSeconds) > 0, `${line.sinceNoticedSeconds} s`);
    assert.deepEqual(
      ovs.status().sources.find(({ name }) => name === 'cgroups'),
      { name: 'cgroups', problem: null },
    );
  });
});

describe('changes to the threads by other processes', () => {
  standIns();
  let metrics: ReturnType<typeof testMetrics>;
  let recorded: ReturnType<typeof recordingEvents>;

  beforeEach(() => {
    metrics = testMetrics();
    recorded = recordingEvents();
    const events = createAffinityEvents({ recorder: recorded.recorder, nodeName: 'n', now: () => 0 });
    parts = { checkInterval: 0.1, events, metrics };
    writeFileSync(enablerFile, '1');
    start();
  });
  it('a thread is moved back at the next check, without an event', async () => {
    free(first());
    createAffinity().set(procThreads.list(vswitchd.pid).at(-1)!, cpus(rest()).toWords(1));
    assert.notDeepEqual(masks(), [first()]);
    await onlyOn(first());
  });

  it('a cpuset that limits the threads is accepted: no more writes, one gauge, one Event', async function () {
    const cpuset = makeCpuset(`plumbline-test-${process.pid}`);
    if (cpuset === undefined) return skipFor({ name: 'cgroups with cpusets', install: 'run as root' }, this);
    try {
      cpuset.allow(first());
      cpuset.add(vswitchd.pid);
      const clipped = async () => (await metrics.ovsClipped.get()).values.reduce((sum, { value }) => sum + value, 0);
      await eventually(async () => (await clipped()) === procThreads.list(vswitchd.pid).length, 'noticed');
      counted.sets = 0;
      free(all());
      await new Promise((resolve) => setTimeout(resolve, 1000));
      assert.deepEqual([...new Set(allowedLists(vswitchd.pid))], [first()]);
      assert.equal(counted.sets, 0);
      assert.deepEqual(recorded.events.filter(({ message }) => message.includes('its cpuset confines')).length, 1);
    } finally {
      cpuset.remove(vswitchd.pid);
    }
  });
});

describe('the enabler file and restored masks', () => {
  standIns();

  it('absent at start, made later: on without a restart; emptied, removed, replaced', async () => {
    start();
    free(first());
    assert.equal(counted.sets, 0);
    assert.ok(!logged.said('OVS CPU affinity pinning disabled'), 'it was never on');
    writeFileSync(enablerFile, '1');
    await onlyOn(first());
    assert.ok(logged.said('Starting OVS daemon CPU pinning'));
    truncateSync(enablerFile);
    await onlyOn(all());
    assert.ok(logged.said('OVS CPU affinity pinning disabled'));
    replaceFile(enablerFile, '1');
    await onlyOn(first());
    rmSync(enablerFile);
    await onlyOn(all());
  });

  it('an empty file enables nothing', async () => {
    writeFileSync(enablerFile, '');
    start();
    free(first());
    assert.equal(counted.sets, 0);
  });

  it('turning it off restores the mask of each thread; the end of the duty changes none', async () => {
    const [tid] = procThreads.list(ovsdb.pid).slice(-1);
    createAffinity().set(tid!, cpus(rest()).toWords(1));
    const before = [allowedLists(vswitchd.pid), allowedLists(ovsdb.pid)];
    writeFileSync(enablerFile, '1');
    start();
    free(first());
    assert.deepEqual(masks(), [first()]);
    counted.sets = 0;
    stop.abort();
    await running;
    assert.deepEqual(masks(), [first()]);
    assert.equal(counted.sets, 0);
    stop = new AbortController();
    start();
    rmSync(enablerFile);
    await eventually(
      () => [allowedLists(vswitchd.pid), allowedLists(ovsdb.pid)].join() === before.join(),
      `as before: ${before}`,
    );
  });

  it('an unreadable enabler file leaves the feature on', async () => {
    writeFileSync(enablerFile, '1');
    start();
    free(first());
    // A symbolic link to itself: ELOOP, even for root.
    rmSync(enablerFile);
    symlinkSync(enablerFile, enablerFile);
    free(all());
    free(first());
    await new Promise((resolve) => setTimeout(resolve, 300));
    assert.deepEqual(masks(), [first()]);
    assert.equal(ovs.status().enabled, true);
  });

  it('vacate while disabled delays no container', async () => {
    start();
    await ovs.vacate(machine());
    assert.equal(counted.sets, 0);
  });
});
