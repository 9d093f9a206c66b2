import assert from 'node:assert/strict';
import { existsSync, mkdirSync, rmSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { CpuSet } from '../../../model/cpu-set.ts';
import { OvsAffinity } from '../../../node-agent/ovs-affinity/ovs-affinity.ts';
import { needs, skipWithout } from '../../support/parts.ts';
import {
  allowedLists,
  eventually,
  recordingLogger,
  replaceFile,
  type StandIn,
  startStandIn,
  tempDirectories,
} from '../support.ts';
import { all, countingAffinity, first, machine, ovsParts, rest, settableView } from './stage.ts';

/** Two real processes with threads, a run directory with their pidfiles, and a view with all CPUs free. */
describe('affinity of real threads, and the enabler file', () => {
  needs('linux');
  const temp = tempDirectories();
  let directory: string;
  let enablerFile: string;
  let vswitchd: StandIn;
  let ovsdb: StandIn;
  let ovs: OvsAffinity;
  let stop: AbortController;
  let running: Promise<void>;
  let view: ReturnType<typeof settableView>;
  let counted: ReturnType<typeof countingAffinity>;
  let logged: ReturnType<typeof recordingLogger>;

  before(function () {
    skipWithout('twoCpus', this);
  });
  beforeEach(async () => {
    directory = temp();
    enablerFile = join(directory, 'etc/enable');
    for (const name of ['run', 'etc']) mkdirSync(join(directory, name));
    [vswitchd, ovsdb] = await Promise.all([
      startStandIn('ovs-vswitchd', 6, join(directory, 'run/ovs-vswitchd.pid')),
      startStandIn('ovsdb-server', 1, join(directory, 'run/ovsdb-server.pid')),
    ]);
    stop = new AbortController();
    logged = recordingLogger();
    counted = countingAffinity();
    view = settableView({ free: machine() });
  });
  afterEach(async () => {
    stop.abort();
    await running;
    await Promise.all([vswitchd.stop(), ovsdb.stop()]);
  });

  const masks = () => [...new Set([...allowedLists(vswitchd.pid), ...allowedLists(ovsdb.pid)])];
  const onlyOn = (list: string) => eventually(() => masks().join('|') === list, `${list}; ${masks().join('|')}`);
  const masksFile = () => join(directory, 'state/masks.json');
  const start = () => {
    ovs = new OvsAffinity(ovsParts(directory, { affinity: counted, assignments: view, log: logged.log }));
    running = ovs.run(stop.signal);
  };

  it('every thread of both daemons follows each change, and the log has the duration', async () => {
    writeFileSync(enablerFile, '1');
    start();
    for (const list of [first(), all(), rest(), first()]) {
      view.free(list);
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

  it('absent at start, made later: on without a restart; emptied, removed, replaced', async () => {
    start();
    view.free(first());
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

  it('turned off, a thread that was starting meanwhile gets its CPUs back, too; then the masks are forgotten', async () => {
    writeFileSync(enablerFile, '1');
    start();
    view.free(first());
    truncateSync(enablerFile);
    await onlyOn(all());
    assert.ok(existsSync(masksFile()));
    counted.set(vswitchd.pid, CpuSet.parse(first()).toWords(1));
    await onlyOn(all());
    assert.ok(!existsSync(masksFile()));
  });

  it('an empty file enables nothing, and the agent’s end then logs nothing', async () => {
    writeFileSync(enablerFile, '');
    start();
    view.free(first());
    stop.abort();
    await running;
    assert.deepEqual([counted.sets, logged.lines], [0, []]);
  });

  it('an unreadable enabler file leaves the feature on', async () => {
    writeFileSync(enablerFile, '1');
    start();
    view.free(first());
    // A symbolic link to itself: ELOOP, even for root.
    rmSync(enablerFile);
    symlinkSync(enablerFile, enablerFile);
    view.free(all());
    view.free(first());
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
