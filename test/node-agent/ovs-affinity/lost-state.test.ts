import assert from 'node:assert/strict';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { createAssignments } from '../../../node-agent/assignments/assignments.ts';
import { OvsAffinity } from '../../../node-agent/ovs-affinity/ovs-affinity.ts';
import { createCgroupTree } from '../../../node-agent/processes/cgroup-tree.ts';
import { createLogger } from '../../../runtime/log.ts';
import { underSignals } from '../../../runtime/time.ts';
import { needs, skipFor, skipWithout } from '../../support/parts.ts';
import { createFakeKubelet, type FakeKubelet } from '../kubelet-stand-in.ts';
import { allowedLists, eventually, type StandIn, startStandIn, tempDirectories } from '../support.ts';
import { type MonitoredOvs, startMonitoredOvs } from './monitored-ovs.ts';
import { makePodCgroup, type RealPodCgroup } from './pod-cgroup.ts';
import { watchMasks } from './sampler.ts';
import { all, cpus, first, machine, ovsParts, rest } from './stage.ts';

const DAEMONS = ['ovs-vswitchd', 'ovsdb-server'] as const;

describe('lost kubelet state while a container runs, with a real Open vSwitch and a real cpuset cgroup', function () {
  this.timeout(300_000);
  needs('openVswitch');
  after(async () => real?.stop());
  const temp = tempDirectories();
  let directory: string;
  let real: MonitoredOvs;
  let kubelet: FakeKubelet;
  let container: StandIn;
  let cgroup: RealPodCgroup | undefined;
  let ovs: OvsAffinity;
  /** Seconds by which the agent’s clock is ahead. */
  let later: number;
  let stop: AbortController;
  let running: Promise<unknown>;

  const masks = () => [...new Set(DAEMONS.flatMap((name) => allowedLists(real.pid(name))))].join('|');
  const stateFile = () => join(kubelet.directory, 'cpu_manager_state');
  const watched = () =>
    watchMasks(
      cpus(rest()).first!,
      DAEMONS.map((name) => real.pid(name)),
    );
  const start = () => {
    stop = new AbortController();
    later = 0;
    const log = createLogger('test', 'silent');
    const kubeletDir = kubelet.directory;
    const assignments = createAssignments({
      kubeletDir,
      cdiDir: join(directory, 'cdi'),
      online: machine,
      log,
      onFailure: () => {},
    });
    const containers = createCgroupTree(cgroup?.root ?? '/sys/fs/cgroup').containers;
    const now = () => performance.now() + later * 1000;
    ovs = new OvsAffinity(ovsParts(directory, { assignments, containers, now, checkInterval: 0.2 }));
    running = Promise.all(
      [assignments, ovs].map((duty) => underSignals([stop.signal], undefined, (signal) => duty.run(signal))),
    );
  };
  /** Makes a pod own every CPU except the first. */
  const own = () => {
    kubelet.pods = { 'ns/pod': { compute: rest() } };
    kubelet.writeCheckpoint(first(), { uid: { compute: rest() } });
  };

  before(async function () {
    skipWithout('twoCpus', this);
    directory = temp();
    for (const name of ['etc', 'kubelet']) mkdirSync(join(directory, name));
    writeFileSync(join(directory, 'etc/enable'), '1');
    real = await startMonitoredOvs(directory);
  });
  beforeEach(async function () {
    kubelet = createFakeKubelet(join(directory, 'kubelet'));
    kubelet.allocatable = rest();
    await kubelet.start();
    container = await startStandIn('dpdk-app', 1, join(directory, 'app.pid'));
    cgroup = makePodCgroup(`plumbline-test-${process.pid}`);
    if (cgroup === undefined) return skipFor({ name: 'cgroups with cpusets', install: 'run as root' }, this);
    cgroup.run(container.pid, rest());
    own();
  });
  afterEach(async () => {
    stop?.abort();
    await running;
    await container.stop();
    cgroup?.remove();
    await kubelet.stop();
    rmSync(stateFile(), { force: true });
  });

  it('the threads never use the container’s CPUs if the checkpoint is rewritten with a full pool and no entries, and the List is empty', async () => {
    start();
    await eventually(() => masks() === first(), 'moved');
    const sampler = await watched();
    kubelet.pods = {};
    kubelet.writeCheckpoint(all());
    await delay(1000);
    later = 100;
    await delay(1000);
    await sampler.sawNone(100);
    assert.match(ovs.status().why.join(), /free in the kubelet’s state, but containers that own them may still run/);
    await container.stop();
    later = 200;
    await eventually(() => masks() === all(), 'grown once it has ended');
  });
});
