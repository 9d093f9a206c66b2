import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { CpuSet } from '../../../model/cpu-set.ts';
import { createAffinity } from '../../../native/affinity.ts';
import { OvsAffinity } from '../../../node-agent/ovs-affinity/ovs-affinity.ts';
import { createAffinityEvents } from '../../../node-agent/ovs-affinity/reporting.ts';
import { createMasksFile } from '../../../node-agent/ovs-affinity/saved-masks.ts';
import { bootId } from '../../../node-agent/processes/proc.ts';
import { needs, skipWithout } from '../../support/parts.ts';
import { allowedLists, eventually, recordingLogger, tempDirectories, testMetrics } from '../support.ts';
import { type MonitoredOvs, startMonitoredOvs } from './monitored-ovs.ts';
import { cpus, first, ovsParts, recordingEvents, rest, settableView } from './stage.ts';

describe('lost masks file of a real Open vSwitch', function () {
  this.timeout(300_000);
  needs('openVswitch');
  after(async () => real?.stop());
  const temp = tempDirectories();
  let directory: string;
  let enabler: string;
  let masksFile: string;
  let real: MonitoredOvs;
  let ovs: OvsAffinity;
  let logged: ReturnType<typeof recordingLogger>;
  let recorded: ReturnType<typeof recordingEvents>;
  let metrics: ReturnType<typeof testMetrics>;
  let stop: AbortController;
  let running: Promise<void>;

  const masks = () =>
    [...new Set(['ovs-vswitchd', 'ovsdb-server'].flatMap((name) => allowedLists(pidOf(name))))].join('|');
  const pidOf = (name: string) => real.pid(name as 'ovs-vswitchd');
  /** The CPUs with which a service starts if it has no setting of its own. */
  const unconfined = () => CpuSet.fromWords(createAffinity().get(1)).toString();
  const messages = () => ovs.status().problems.join();
  const start = () => {
    logged = recordingLogger();
    recorded = recordingEvents();
    metrics = testMetrics();
    stop = new AbortController();
    const events = createAffinityEvents({ recorder: recorded.recorder, nodeName: 'n', now: () => 0 });
    const assignments = settableView({ free: cpus(first()), owned: cpus(rest()) });
    ovs = new OvsAffinity(ovsParts(directory, { assignments, log: logged.log, events, metrics }));
    running = ovs.run(stop.signal);
  };
  const end = async () => {
    stop.abort();
    await running;
  };

  before(async function () {
    skipWithout('twoCpus', this);
    directory = temp();
    mkdirSync(join(directory, 'etc'));
    enabler = join(directory, 'etc/enable');
    masksFile = join(directory, 'state/masks.json');
    real = await startMonitoredOvs(directory);
  });
  beforeEach(async () => {
    writeFileSync(enabler, '1');
    start();
    assert.equal(masks(), first());
    await end();
    assert.ok(existsSync(masksFile));
  });
  afterEach(async () => {
    await end();
    rmSync(enabler, { force: true });
    start();
    await end();
    rmSync(join(directory, 'state'), { recursive: true, force: true });
  });

  const replaceByDirectory = () => {
    rmSync(masksFile);
    mkdirSync(masksFile);
  };
  const losses: [string, () => void][] = [
    ['emptied', () => truncateSync(masksFile)],
    ['torn', () => truncateSync(masksFile, 100)],
    ['in another form', () => writeFileSync(masksFile, '{"bootId": 1}')],
    ['too large', () => truncateSync(masksFile, 2 ** 30)],
    ['a directory', () => replaceByDirectory()],
  ];
  for (const [name, lose] of losses) {
    it(`${name}: reported, kept under another name and replaced; when turned off, threads get the CPUs of a service`, async () => {
      lose();
      start();
      assert.equal(masks(), first());
      assert.match(
        messages(),
        /masks\.json: .*if the feature is turned off, threads get the CPUs of the machine’s first process/,
      );
      assert.match(ovs.problems().join(), /first process/);
      assert.ok(logged.lines.some(({ level, reasons }) => level === 40 && /masks\.json/.test(String(reasons))));
      assert.deepEqual(
        recorded.events.filter(({ message }) => message.includes('masks.json')).map(({ reason }) => reason),
        ['OvsAffinityIncomplete'],
      );
      const { values } = await metrics.ovsErrors.get();
      assert.deepEqual(
        values.map(({ labels, value }) => [labels.cause, value]),
        [['masks-file', 1]],
      );
      assert.ok(existsSync(`${masksFile}.corrupt`));
      assert.equal(createMasksFile(masksFile, bootId()).load().length, 4, 'both daemons and their monitors');
      rmSync(enabler);
      await eventually(() => !ovs.status().enabled, 'off');
      assert.equal(masks(), unconfined());
      assert.ok(!existsSync(masksFile));
    });
  }

  it('the replacement is good for the next agent', async () => {
    truncateSync(masksFile);
    start();
    await end();
    start();
    assert.equal(messages(), '');
    rmSync(enabler);
    await eventually(() => masks() === unconfined(), 'restored');
  });

  it('a loss that is found while the feature is off gives the same masks and a log line', async () => {
    writeFileSync(masksFile, 'x');
    rmSync(enabler);
    start();
    assert.equal(masks(), unconfined());
    assert.ok(logged.lines.some(({ reasons }) => /first process/.test(String(reasons))));
    assert.ok(!existsSync(masksFile));
    assert.equal(readFileSync(`${masksFile}.corrupt`, 'utf8'), 'x');
  });
});
