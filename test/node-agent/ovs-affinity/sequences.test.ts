import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createAssignments } from '../../../node-agent/assignments/assignments.ts';
import { OvsAffinity } from '../../../node-agent/ovs-affinity/ovs-affinity.ts';
import { createAffinityEvents } from '../../../node-agent/ovs-affinity/reporting.ts';
import { underSignals } from '../../../runtime/time.ts';
import { needs, skipWithout } from '../../support/parts.ts';
import { createFakeKubelet, type FakeKubelet } from '../kubelet-stand-in.ts';
import { allowedLists, eventually, recordingLogger, type StandIn, startStandIn, tempDirectories } from '../support.ts';
import { watchMasks } from './sampler.ts';
import { all, countingAffinity, cpus, first, machine, ovsParts, recordingEvents, rest } from './stage.ts';

const sleep = (seconds: number) => new Promise((resolve) => setTimeout(resolve, seconds * 1000));

let directory: string;
let kubelet: FakeKubelet;
let daemons: StandIn[];
let stop: AbortController;
let running: Promise<unknown>;
let counted: ReturnType<typeof countingAffinity>;
let recorded: ReturnType<typeof recordingEvents>;
let logged: ReturnType<typeof recordingLogger>;
let failures: string[];

const masks = () => [...new Set(daemons.flatMap(({ pid }) => allowedLists(pid)))].join('|');
const onlyOn = (list: string) => eventually(() => masks() === list, `every thread on ${list}`);
/** From now on, no daemon may use the first CPU of the pod. */
const watched = () =>
  watchMasks(
    cpus(rest()).first!,
    daemons.map(({ pid }) => pid),
  );

/** A pod owns every CPU except the first, which is reserved. Ends when the daemons have left them. */
async function owned(): Promise<void> {
  kubelet.pods = { 'ns/pod': { compute: rest() } };
  kubelet.writeCheckpoint(first(), { uid: { compute: rest() } });
  await onlyOn(first());
}

describe('sequences of kubelet writes, with real threads sampled from outside', () => {
  needs('linux');
  const temp = tempDirectories();
  before(function () {
    skipWithout('twoCpus', this);
  });

  beforeEach(async () => {
    directory = temp();
    for (const name of ['run', 'etc', 'kubelet']) mkdirSync(join(directory, name));
    writeFileSync(join(directory, 'etc/enable'), '1');
    daemons = await Promise.all(
      ['ovs-vswitchd', 'ovsdb-server'].map((name) => startStandIn(name, 1, join(directory, `run/${name}.pid`))),
    );
    kubelet = createFakeKubelet(join(directory, 'kubelet'));
    kubelet.allocatable = rest();
    kubelet.writeCheckpoint(all());
    await kubelet.start();
    stop = new AbortController();
    counted = countingAffinity();
    recorded = recordingEvents();
    logged = recordingLogger();
    failures = [];
    const { log } = logged;
    const onFailure = (code: string) => void failures.push(code);
    const assignments = createAssignments({
      kubeletDir: kubelet.directory,
      cdiDir: kubelet.cdiDir,
      online: machine,
      log,
      onFailure,
    });
    const events = createAffinityEvents({
      recorder: recorded.recorder,
      nodeName: 'n',
      now: () => performance.now() / 1000,
    });
    const parts = { affinity: counted, assignments, events, log, checkInterval: 0.1 };
    running = Promise.all([
      underSignals([stop.signal], undefined, assignments.run),
      underSignals([stop.signal], undefined, (run) => new OvsAffinity(ovsParts(directory, parts)).run(run)),
    ]);
    await eventually(() => assignments.view().free !== undefined, 'everything is known');
  });
  afterEach(async () => {
    stop.abort();
    await running;
    await kubelet.stop();
    await Promise.all(daemons.map((daemon) => daemon.stop()));
  });

  it('a kubelet restart that lists no CPUs, then all CPUs and no pods, never allows an owned CPU', async () => {
    await owned();
    const sampler = await watched();
    await kubelet.stop();
    await sleep(0.2);
    kubelet.allocatable = '';
    kubelet.pods = {};
    await kubelet.start();
    await sleep(0.7);
    kubelet.allocatable = rest();
    await sleep(0.7);
    kubelet.pods = { 'ns/pod': { compute: rest() } };
    await sleep(0.3);
    await sampler.sawNone(100);
  });

  const orders: [string, () => void][] = [
    ['the pool shrinks, then the entry appears', () => kubelet.writeCheckpoint(first(), {})],
    ['the entry appears, then the pool shrinks', () => kubelet.writeCheckpoint(all(), { uid: { compute: rest() } })],
  ];
  for (const [name, half] of orders) {
    it(`two writes, ${name}: threads leave; when released in two writes, they return only after both`, async () => {
      half();
      await onlyOn(first());
      const sampler = await watched();
      kubelet.pods = { 'ns/pod': { compute: rest() } };
      kubelet.writeCheckpoint(first(), { uid: { compute: rest() } });
      await sleep(0.3);
      kubelet.pods = {};
      half();
      await sleep(0.3);
      await sampler.sawNone();
      kubelet.writeCheckpoint(all());
      await onlyOn(all());
    });
  }

  it('the socket hangs: the masks do not grow, threads leave assigned CPUs at once; counted at the timeout, one Event', async () => {
    kubelet.behaviour = () => new Promise(() => {});
    kubelet.writeCheckpoint(first(), { uid: { compute: rest() } });
    await onlyOn(first());
    counted.sets = 0;
    kubelet.writeCheckpoint(all());
    await eventually(() => failures.includes('deadline'), 'given up');
    await eventually(() => recorded.events.some(({ reason }) => reason === 'OvsAffinityHeld'), 'an Event');
    await sleep(0.5);
    assert.equal(masks(), first());
    assert.equal(counted.sets, 0);
    assert.equal(recorded.events.filter(({ type }) => type === 'Warning').length, 1);
  });

  it('the masks converge even if the kernel drops events, including the decisive one', async () => {
    await onlyOn(all());
    const most = Number(readFileSync('/proc/sys/fs/inotify/max_queued_events', 'utf8'));
    const noise = ['one', 'two'].map((name) => join(kubelet.directory, name)) as [string, string];
    writeFileSync(noise[0], '');
    // Each rename is two events, and none is read meanwhile.
    for (let i = 0; i <= most / 2; i++) renameSync(noise[i % 2]!, noise[(i + 1) % 2]!);
    kubelet.writeCheckpoint(first(), { uid: { compute: rest() } });
    await eventually(() => masks() === first(), 'every thread on its CPUs');
  });
});
