import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createAffinity } from '../../../native/affinity.ts';
import { OvsAffinity } from '../../../node-agent/ovs-affinity/ovs-affinity.ts';
import { createAffinityEvents } from '../../../node-agent/ovs-affinity/reporting.ts';
import { procThreads } from '../../../node-agent/processes/proc.ts';
import { needs, skipFor, skipWithout } from '../../support/parts.ts';
import { allowedLists, eventually, type StandIn, startStandIn, tempDirectories, testMetrics } from '../support.ts';
import { makeCpuset, type RealCpuset } from './cpuset.ts';
import { all, countingAffinity, cpus, first, machine, ovsParts, recordingEvents, rest, settableView } from './stage.ts';

const sleep = (seconds: number) => new Promise((resolve) => setTimeout(resolve, seconds * 1000));

describe('changes to the threads by other processes', () => {
  needs('linux');
  const temp = tempDirectories();
  let daemon: StandIn;
  let view: ReturnType<typeof settableView>;
  let counted: ReturnType<typeof countingAffinity>;
  let recorded: ReturnType<typeof recordingEvents>;
  let metrics: ReturnType<typeof testMetrics>;
  let stop: AbortController;
  let running: Promise<void>;
  let cpuset: RealCpuset | undefined;

  const masks = () => [...new Set(allowedLists(daemon.pid))].join('|');
  const totalOf = async (metric: { get(): Promise<{ values: { value: number }[] }> }) =>
    (await metric.get()).values.reduce((sum, { value }) => sum + value, 0);

  before(function () {
    skipWithout('twoCpus', this);
  });
  beforeEach(async () => {
    const directory = temp();
    for (const name of ['run', 'etc']) mkdirSync(join(directory, name));
    writeFileSync(join(directory, 'etc/enable'), '1');
    daemon = await startStandIn('ovs-vswitchd', 1, join(directory, 'run/ovs-vswitchd.pid'));
    view = settableView({ free: machine() });
    counted = countingAffinity();
    recorded = recordingEvents();
    metrics = testMetrics();
    stop = new AbortController();
    const events = createAffinityEvents({ recorder: recorded.recorder, nodeName: 'n', now: () => 0 });
    const parts = { affinity: counted, assignments: view, checkInterval: 0.1, events, metrics };
    running = new OvsAffinity(ovsParts(directory, parts)).run(stop.signal);
    await sleep(0.2);
  });
  afterEach(async () => {
    stop.abort();
    await running;
    cpuset?.remove(daemon.pid);
    cpuset = undefined;
    await daemon.stop();
  });

  const clip = (context: Mocha.Context, list: string) => {
    cpuset = makeCpuset(`plumbline-test-${process.pid}`);
    if (cpuset === undefined) return skipFor({ name: 'cgroups with cpusets', install: 'run as root' }, context);
    cpuset.allow(list);
    cpuset.add(daemon.pid);
  };

  it('moves a thread back at the next check, without an event, if another process moved it', async () => {
    view.free(first());
    createAffinity().set(procThreads.list(daemon.pid).at(-1)!, cpus(rest()).toWords(1));
    assert.notEqual(masks(), first());
    await eventually(() => masks() === first(), 'put back');
  });

  it('accepts a cpuset that limits the threads: no more writes, one gauge, one Event', async function () {
    clip(this, first());
    await eventually(async () => (await totalOf(metrics.ovsClipped)) > 0, 'noticed');
    counted.sets = 0;
    view.free(all());
    await sleep(1);
    assert.equal(masks(), first());
    assert.equal(counted.sets, 0);
    assert.equal(await totalOf(metrics.ovsClipped), procThreads.list(daemon.pid).length);
    assert.deepEqual(recorded.events.filter(({ message }) => message.includes('its cpuset confines')).length, 1);
  });

  it('reports a cpuset that excludes the wanted CPUs, and does not retry in a loop', async function () {
    clip(this, rest());
    view.free(first());
    await eventually(async () => (await totalOf(metrics.ovsRefused)) > 0, 'noticed');
    counted.sets = 0;
    await sleep(1);
    assert.equal(counted.sets, 0);
    assert.equal(masks(), rest());
    assert.match(recorded.events.map(({ message }) => message).join(), /the kernel refused \d+ threads: EINVAL/);
  });
});
