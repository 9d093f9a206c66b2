import assert from 'node:assert/strict';
import { join } from 'node:path';
import { switchConfig } from '../../node-agent/networks/switch-config.ts';
import { DaemonFinder } from '../../node-agent/open-vswitch/daemons.ts';
import { followOvsdb } from '../../node-agent/open-vswitch/ovsdb/follow.ts';
import { type DaemonProcess, fromSource, startDaemonProcess } from '../support/daemon-process.ts';
import { eventually } from '../support/eventually.ts';
import { tempDirectories } from '../support/files.ts';
import { silent } from '../support/logger.ts';

describe('the Open vSwitch of an emulated node', function () {
  this.timeout(300_000);
  const temp = tempDirectories();
  const daemons: DaemonProcess[] = [];
  afterEach(() => {
    for (const daemon of daemons.splice(0)) daemon.process.kill('SIGKILL');
  });

  it('has daemons that the agent finds and asks, and a bridge with an uplink for each physnet', async () => {
    const rundir = temp();
    for (const name of ['ovs-vswitchd', 'ovsdb-server']) {
      const flags = ['--name', name, '--rundir', rundir, '--threads', '1', '--physnet', 'physnet0=1'];
      daemons.push(startDaemonProcess([...fromSource('sandbox/open-vswitch/stand-in.ts'), ...flags]));
    }
    const pids = () => new DaemonFinder(rundir).find().processes.map(({ role, pid }) => `${role} ${pid}`);
    const started = daemons.map(({ process }) => `daemon ${process.pid}`);
    await eventually(() => pids().join() === started.join(), `${started}`);

    const stop = new AbortController();
    const uplinks: unknown[] = [];
    const following = followOvsdb(
      {
        socketPath: join(rundir, 'db.sock'),
        onTables: (tables) => {
          const { mappings, bridges } = switchConfig(tables);
          const [bridge = ''] = mappings.get('physnet0') ?? [];
          uplinks.push(bridges.get(bridge)?.interfaces.map(({ name, kind, numaId }) => [name, kind, numaId]));
        },
        onProblem: (error) => assert.fail(error),
        log: silent,
      },
      stop.signal,
    );
    await eventually(() => uplinks.length > 0, 'its tables');
    stop.abort();
    await following;
    assert.deepEqual(uplinks, [[['up-physnet0', 'dpdk', 1]]]);
    for (const daemon of daemons) assert.equal(await daemon.stop(), 0);
  });
});
