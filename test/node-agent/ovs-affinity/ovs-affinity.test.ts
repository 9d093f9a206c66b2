import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  renameSync,
  rmdirSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
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
  settableView,
  startStandIn,
  tempDirectories,
} from '../support.ts';
import { all, countingAffinity, first, machine, ovsParts, rest } from './stage.ts';

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
    assert.deepEqual(ovs.status().sources.at(-1), { name: 'cgroups', problem: null });
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

  for (const [fault, make] of [
    ['a symbolic link to itself: ELOOP, even for root', (path: string) => symlinkSync('enable', path)],
    ['a directory', (path: string) => mkdirSync(path)],
    ['a FIFO', (path: string) => execFileSync('mkfifo', [path])],
  ] as const) {
    it(`an enabler file that is ${fault} leaves the feature on, with a log line`, async () => {
      writeFileSync(enablerFile, '1');
      start();
      view.free(first());
      make(join(directory, 'fault'));
      rmSync(enablerFile);
      renameSync(join(directory, 'fault'), enablerFile);
      await eventually(() => logged.said('reading the OVS enabler file failed; keeping its last state'), 'the fault');
      assert.ok(ovs.status().enabled);
      view.free(all());
      view.free(first());
      assert.deepEqual(masks(), [first()]);
      rmSync(enablerFile, { recursive: true });
      await onlyOn(all());
    });
  }

  it('turned off, the masks of an earlier agent are restored as soon as their file can be read', async () => {
    writeFileSync(enablerFile, '1');
    start();
    view.free(first());
    stop.abort();
    await running;
    renameSync(masksFile(), `${masksFile()}.elsewhere`);
    mkdirSync(masksFile());
    stop = new AbortController();
    start();
    view.free(rest());
    assert.match(ovs.problems().join(), /original masks are unknown/);
    rmSync(enablerFile);
    await onlyOn(first());
    rmdirSync(masksFile());
    renameSync(`${masksFile()}.elsewhere`, masksFile());
    await eventually(() => masks().join() === all(), 'restored', 30);
    await eventually(() => !existsSync(masksFile()), 'forgotten');
  }).timeout(60_000);

  it('masks that could not be saved are a problem until they are, also if nothing else changes', async () => {
    start();
    mkdirSync(masksFile(), { recursive: true });
    writeFileSync(enablerFile, '1');
    view.free(first());
    await eventually(() => /cannot save/.test(ovs.problems().join()), 'reported');
    rmdirSync(masksFile());
    await eventually(() => ovs.problems().length === 0, 'healed', 30);
    assert.equal(statSync(masksFile()).isFile(), true);
  }).timeout(60_000);

  it('vacate while disabled delays no container', async () => {
    start();
    await ovs.vacate(machine());
    assert.equal(counted.sets, 0);
  });
});
