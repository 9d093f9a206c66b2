import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createDaemonFinder } from '../../../node-agent/open-vswitch/daemons.ts';
import { needs, skipWithout } from '../../support/parts.ts';
import { createFakeKubelet, type FakeKubelet } from '../kubelet-stand-in.ts';
import { allowedLists, eventually, tempDirectories } from '../support.ts';
import { isAlive, type MonitoredOvs, startMonitoredOvs } from './monitored-ovs.ts';
import { first, rest } from './stage.ts';

const PROGRAM = join(import.meta.dirname, 'program.ts');
const DAEMONS = ['ovs-vswitchd', 'ovsdb-server'] as const;

describe('monitors of a real Open vSwitch that restarts', function () {
  this.timeout(300_000);
  needs('openVswitch');
  after(async () => {
    program?.kill('SIGKILL');
    await kubelet?.stop();
    await real?.stop();
  });
  const temp = tempDirectories();
  let real: MonitoredOvs;
  let kubelet: FakeKubelet | undefined;
  let program: ChildProcess | undefined;

  const processes = () => DAEMONS.flatMap((name) => [real.pid(name), real.monitor(name)]);
  const masks = () => [...new Set(processes().flatMap(allowedLists))].join('|');
  const each = () => processes().map((pid) => `${pid}: ${allowedLists(pid)}`);

  before(async function () {
    skipWithout('twoCpus', this);
    const directory = temp();
    for (const name of ['etc', 'kubelet']) mkdirSync(join(directory, name));
    writeFileSync(join(directory, 'etc/enable'), '1');
    real = await startMonitoredOvs(directory);
    kubelet = createFakeKubelet(join(directory, 'kubelet'));
    kubelet.allocatable = rest();
    kubelet.pods = { 'ns/pod': { compute: rest() } };
    kubelet.writeCheckpoint(first(), { uid: { compute: rest() } });
    await kubelet.start();
    // In its own process, which continues while the daemon starts. The interval is so long that no periodic check
    // helps.
    program = spawn(process.execPath, ['--import', 'tsx', PROGRAM, directory, '600'], { stdio: 'ignore' });
    await eventually(() => masks() === first(), 'moved');
  });

  for (const name of DAEMONS) {
    it(`${name}: five new monitors are each moved as soon as the daemon has written its pidfile`, async () => {
      for (let round = 1; round <= 5; round++) {
        const before = real.monitor(name);
        // Its monitor takes SIGKILL as a normal end.
        process.kill(real.pid(name), 'SIGKILL');
        await eventually(() => !isAlive(before), 'the monitor has ended too');
        real.startAgain(name);
        await eventually(() => masks() === first(), `round ${round}`, 10).catch((error) =>
          assert.fail(`${error}: ${each().join('; ')}`),
        );
      }
    });
  }

  it('a monitor whose daemon is down is only known to an agent that has seen them together, and stays moved', async () => {
    const monitor = real.monitor('ovsdb-server');
    const finder = createDaemonFinder(real.rundir);
    finder.find();
    // The first time, the daemon restarts at once. The second time, its monitor waits for ten seconds.
    for (const comesBack of [true, false]) {
      const before = real.pid('ovsdb-server');
      process.kill(before, 'SIGSEGV');
      await eventually(() => !isAlive(before), 'ended');
      const isBack = () => real.isUp('ovsdb-server') && real.pid('ovsdb-server') !== before;
      if (comesBack) await eventually(isBack, 'respawned');
    }
    const databases = ({ processes }: ReturnType<typeof finder.find>) =>
      processes.filter((one) => one.name === 'ovsdb-server').map(({ role, pid }) => ({ role, pid }));
    const { missing, ...seen } = finder.find();
    assert.deepEqual(databases({ missing, ...seen }), [{ role: 'monitor', pid: monitor }]);
    assert.deepEqual(databases(createDaemonFinder(real.rundir).find()), [], 'a title proves nothing');
    assert.deepEqual(
      missing.map(({ name, code }) => ({ name, code })),
      [{ name: 'ovsdb-server', code: 'absent' }],
    );
    await eventually(() => real.isUp('ovsdb-server'), 'back');
    await eventually(() => masks() === first(), 'on the same CPUs');
  });
});
