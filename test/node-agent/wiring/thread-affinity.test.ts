import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { needs, skipWithout } from '../../support/parts.ts';
import { FakeKubelet } from '../kubelet-stand-in.ts';
import { DAEMONS, isAlive, type MonitoredOvs, startMonitoredOvs } from '../ovs-affinity/monitored-ovs-stage.ts';
import { watchMasks } from '../ovs-affinity/real-stage.ts';
import { all, cpus, first, rest } from '../ovs-affinity/stage.ts';
import { allowedLists, eventually, tempDirectories } from '../support.ts';

const PROGRAM = join(import.meta.dirname, '../ovs-affinity/program-stage.ts');

/** The agent in its own process, with the default flags, next to a real Open vSwitch. */
describe('a real Open vSwitch, sampled each millisecond, while the agent ends or is updated and containers own CPUs', function () {
  this.timeout(300_000);
  needs('openVswitch');
  // Ends before its directory is removed: hooks run in the order of their declaration.
  after(async () => real?.stop());
  const temp = tempDirectories();
  let directory: string;
  let enabler: string;
  let real: MonitoredOvs;
  let kubelet: FakeKubelet;
  let program: ChildProcess;
  let sampler: Awaited<ReturnType<typeof watchMasks>> | undefined;

  const masks = () => [...new Set(real.processes().flatMap(allowedLists))].join('|');
  const start = (...checkInterval: string[]) => {
    program = spawn(process.execPath, ['--import', 'tsx', PROGRAM, directory, ...checkInterval], { stdio: 'ignore' });
  };
  const end = async (signal: NodeJS.Signals) => {
    const exited = once(program, 'exit');
    program.kill(signal);
    await exited;
  };
  const neverOnOwned = async () => {
    await sampler!.sawNone(100);
    sampler = undefined;
    assert.equal(masks(), first());
  };

  before(async function () {
    skipWithout('twoCpus', this);
    directory = temp();
    for (const name of ['etc', 'kubelet']) mkdirSync(join(directory, name));
    enabler = join(directory, 'etc/enable');
    real = await startMonitoredOvs(directory);
  });
  beforeEach(async () => {
    assert.equal(masks(), all());
    writeFileSync(enabler, '1');
    kubelet = new FakeKubelet(join(directory, 'kubelet'));
    kubelet.allocatable = rest();
    kubelet.pods = { 'ns/pod': { compute: rest() } };
    kubelet.writeCheckpoint(first(), { uid: { compute: rest() } });
    await kubelet.start();
    start();
    await eventually(() => masks() === first(), 'moved off owned CPUs');
    sampler = await watchMasks(cpus(rest()).first!, real.processes());
  });
  afterEach(async () => {
    sampler?.end();
    program.kill('SIGKILL');
    await kubelet.stop();
    rmSync(enabler, { force: true });
    // The next agent undoes the changes of this one.
    start();
    await eventually(() => masks() === all(), 'restored').catch((error: Error) => {
      throw new Error(
        `${error.message}: threads are on ${masks()}, the exit status of the agent is ${program.exitCode}`,
      );
    });
    await end('SIGKILL');
  });

  it('a rollout of the DaemonSet, from the old agent to the new one, never allows an owned CPU', async () => {
    await end('SIGTERM');
    await delay(200);
    start();
    await delay(3000);
    await neverOnOwned();
  });

  for (const name of DAEMONS) {
    it(`new monitors of ${name} are each moved as soon as the daemon has written its pidfile`, async () => {
      sampler!.end();
      sampler = undefined;
      await end('SIGTERM');
      // So long that no periodic check helps.
      start('600');
      for (let round = 1; round <= 5; round++) {
        const before = real.monitor(name);
        // Its monitor takes SIGKILL as a normal end.
        process.kill(real.pid(name), 'SIGKILL');
        await eventually(() => !isAlive(before), 'the monitor has ended too');
        await real.startAgain(name);
        await eventually(() => masks() === first(), `round ${round}`, 10);
      }
    });
  }

  const mainMask = (pid: number) => allowedLists(pid)[0];

  /** Starts ovs-vswitchd until it is stopped (SIGSTOP) within the 0.1 s in which it confines its main thread. */
  const confined = async (): Promise<{ pid: number; ready: Promise<unknown> }> => {
    for (let attempt = 0; attempt < 30; attempt++) {
      const monitor = real.monitor('ovs-vswitchd');
      process.kill(real.pid('ovs-vswitchd'), 'SIGKILL');
      await eventually(() => !isAlive(monitor), 'the monitor has ended too');
      const ready = real.startAgain('ovs-vswitchd');
      const until = performance.now() + 30_000;
      while (!real.isUp('ovs-vswitchd') || mainMask(real.pid('ovs-vswitchd')) === all()) {
        if (performance.now() > until) break;
        await delay(1);
      }
      const pid = real.pid('ovs-vswitchd');
      process.kill(pid, 'SIGSTOP');
      await delay(10);
      if (mainMask(pid) !== all()) return { pid, ready };
      process.kill(pid, 'SIGCONT');
      await ready;
    }
    return assert.fail('it confines itself while it starts');
  };

  it('an ovs-vswitchd that is first seen while it confines its main thread for its start gets its own CPUs back', async () => {
    sampler!.end();
    sampler = undefined;
    program.kill('SIGSTOP');
    const { pid, ready } = await confined();
    program.kill('SIGCONT');
    await eventually(() => mainMask(pid) === first(), 'its main thread is moved');
    process.kill(pid, 'SIGCONT');
    await ready;
    await eventually(() => masks() === first(), 'moved');
  });

  it('turned off while CPUs are owned: every thread gets its own CPUs back', async () => {
    sampler!.end();
    sampler = undefined;
    rmSync(enabler);
    await eventually(() => masks() === all(), 'restored');
  });
});
