import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { isSwitchInOrder } from '../../../cli/agent/ovs-status.ts';
import { statusLines } from '../../../cli/ovs/run.ts';
import { ovsStatus } from '../../../model/agent-status.ts';
import { OvsAffinity } from '../../../node-agent/ovs-affinity/ovs-affinity.ts';
import { createAffinityEvents } from '../../../node-agent/ovs-affinity/reporting.ts';
import { needs, skipWithout } from '../../support/parts.ts';
import { allowedLists, eventually, tempDirectories, testMetrics } from '../support.ts';
import { type MonitoredOvs, startMonitoredOvs } from './monitored-ovs.ts';
import { all, countingAffinity, cpus, first, machine, ovsParts, recordingEvents, rest, settableView } from './stage.ts';

const DAEMONS = ['ovs-vswitchd', 'ovsdb-server'] as const;

describe('a second writer of the masks of a real Open vSwitch', function () {
  this.timeout(300_000);
  needs('openVswitch');
  after(async () => real?.stop());
  const temp = tempDirectories();
  let directory: string;
  let real: MonitoredOvs;
  let ovs: OvsAffinity;
  let view: ReturnType<typeof settableView>;
  let counted: ReturnType<typeof countingAffinity>;
  let recorded: ReturnType<typeof recordingEvents>;
  let metrics: ReturnType<typeof testMetrics>;
  let changes: number;
  let stop: AbortController;
  let running: Promise<void>;
  let writer: ChildProcess | undefined;

  const masks = () => [...new Set(DAEMONS.flatMap((name) => allowedLists(real.pid(name))))].join('|');
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
  });
  beforeEach(() => {
    changes = 0;
    view = settableView({ free: machine() });
    counted = countingAffinity();
    recorded = recordingEvents();
    metrics = testMetrics();
    const events = createAffinityEvents({ recorder: recorded.recorder, nodeName: 'n', now: () => 0 });
    stop = new AbortController();
    const parts = { assignments: view, affinity: counted, events, metrics, checkInterval: 0.5 };
    ovs = new OvsAffinity(ovsParts(directory, parts));
    ovs.subscribe(() => changes++);
    running = ovs.run(stop.signal);
  });
  afterEach(async () => {
    await endWriter();
    stop.abort();
    await running;
  });

  it('a program that keeps writing causes an Event, metrics, a status and an exit code, and is tolerated without owned CPUs', async () => {
    view.free(first());
    startWriter(all());
    await eventually(async () => (await contended()) === 1, 'seen');
    assert.deepEqual(reasons(), ['OvsAffinityContended']);
    assert.ok((await displaced()) > 5);
    assert.ok(changes > 0, 'the report hears of it');
    const status = ovsStatus.parse(ovs.status());
    assert.match(ovs.status().problems.join(), /another process also sets the CPUs/);
    assert.equal(isSwitchInOrder(status), false);
    assert.match(statusLines(status).join('\n'), /^! another process also sets .*ovnkube-node does this if .*enable/m);
    assert.match(ovs.problems().join(), /another process/);
    await eventually(() => masks() === all(), 'as the other has set them');
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
});
