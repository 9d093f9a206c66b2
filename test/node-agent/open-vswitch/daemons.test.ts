import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  copyFileSync,
  existsSync,
  linkSync,
  mkdirSync,
  openSync,
  realpathSync,
  rmSync,
  utimesSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { DaemonFinder, readPid } from '../../../node-agent/open-vswitch/daemons.ts';
import { commandLineOf, commOf, startOf } from '../../../node-agent/processes/proc.ts';
import { skipFor } from '../../support/parts.ts';
import { eventually, lockingCommand, replaceFile, tempDirectories } from '../support.ts';

/** Larger than any pid of the kernel. */
const NO_PID = 9_999_999;

describe('the daemons of Open vSwitch', () => {
  const temp = tempDirectories();
  let rundir: string;
  const started: ChildProcess[] = [];
  let grandchild: number | undefined;
  const pidfile = (name: string) => join(rundir, `${name}.pid`);
  const write = (name: string, text: string | number) => replaceFile(pidfile(name), `${text}\n`);

  beforeEach(() => {
    rundir = temp();
  });
  afterEach(async () => {
    if (grandchild !== undefined) process.kill(grandchild, 'SIGKILL');
    grandchild = undefined;
    await Promise.all(started.splice(0).map(end));
  });

  const end = async (child: ChildProcess) => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    child.kill('SIGKILL');
    await once(child, 'exit');
  };
  /** A program with the given name, which the kernel shows as its comm. */
  const programOf = (name: string, program: string): string => {
    const copy = join(temp(), name);
    copyFileSync(realpathSync(program), copy);
    return copy;
  };
  const start = async (file: string, args: readonly string[], argv0 = file) => {
    const child = spawn(file, args, { argv0, stdio: ['pipe', 'pipe', 'ignore'] });
    started.push(child);
    const pid = child.pid ?? 0;
    await eventually(() => commandLineOf(pid)?.startsWith(argv0) === true, `${argv0} runs`);
    return Object.assign(child, { pid });
  };
  const startDaemon = async (name: string) => {
    const [perl = '', ...command] = lockingCommand(pidfile(name), programOf(name, '/bin/sleep'), [name, '1000']);
    const child = await start(perl, command, name);
    await eventually(() => existsSync(pidfile(name)) && commOf(child.pid) === name, `${name} runs`);
    return child;
  };
  /** A shell with the given title that has a daemon as its child, and the child's pid. */
  const startParent = async (parent: string, title: string) => {
    const name = 'ovs-vswitchd';
    const command = lockingCommand(pidfile(name), programOf(name, '/bin/sleep'), [name, '1000']);
    const shell = programOf(parent, '/bin/sh');
    const child = await start(shell, ['-c', '"$0" "$@" & echo $!; wait; read line', ...command], title);
    const [line] = (await once(child.stdout!, 'data')) as [Buffer];
    const pid = Number(String(line));
    await eventually(() => existsSync(pidfile(name)) && commOf(pid) === name, `${name} runs`);
    return { parent: child, pid, stop: () => process.kill(pid, 'SIGKILL') };
  };
  const searchWith = (finder: DaemonFinder) => {
    const { processes, missing, ...rest } = finder.find();
    return {
      processes: processes.map(({ name, role, pid }) => `${name} ${role} ${pid}`),
      missing: missing.map(({ name, code }) => `${name} ${code}`),
      ...rest,
    };
  };
  const NONE = ['ovs-vswitchd absent', 'ovsdb-server absent'];

  it('are both absent without a pidfile; nothing changed or is starting', () => {
    const finder = new DaemonFinder(rundir);
    assert.equal(finder.isUnchanged(), false, 'not looked yet');
    assert.deepEqual(searchWith(finder), { processes: [], missing: NONE, changed: false, isStarting: false });
    assert.equal(finder.isUnchanged(), true);
    write('ovsdb-server', 'x');
    assert.equal(finder.isUnchanged(), false);
  });

  it('are missing for a reason with its own code', () => {
    const codeOf = () => {
      const { processes, missing } = new DaemonFinder(rundir).find();
      return processes.length === 0 ? missing[0]?.code : undefined;
    };
    const codeWith = (text: string | number) => {
      write('ovs-vswitchd', text);
      return codeOf();
    };
    assert.equal(codeWith(NO_PID), 'absent');
    assert.equal(codeWith(process.pid), 'stale', 'another program, which has not locked the file');
    assert.equal(codeWith('x'), 'unreadable');
    rmSync(pidfile('ovs-vswitchd'));
    assert.equal(codeOf(), 'absent');
    mkdirSync(pidfile('ovs-vswitchd'));
    assert.equal(codeOf(), 'unreadable');
  });

  it('have a pid of one to seven digits without a leading zero', () => {
    const read = (text: string) => {
      writeFileSync(pidfile('x'), text);
      return readPid(pidfile('x'));
    };
    assert.deepEqual([read('1'), read(' 4711\n'), read('9999999')], [1, 4711, 9_999_999]);
    for (const text of ['', '0', '01', '-1', '1.5', '10000000', '1 2', '1x']) {
      assert.throws(() => read(text), /x\.pid contains no process id$/, text);
    }
  });

  it('are found without a monitor, found again without a change, and missing after they ended', async () => {
    const daemon = await startDaemon('ovsdb-server');
    const finder = new DaemonFinder(rundir);
    const line = `ovsdb-server daemon ${daemon.pid}`;
    const expected = { processes: [line], missing: ['ovs-vswitchd absent'], isStarting: false };
    assert.deepEqual(searchWith(finder), { ...expected, changed: true });
    assert.deepEqual(searchWith(finder), { ...expected, changed: false });
    assert.equal(finder.isUnchanged(), true);
    assert.equal(finder.find().processes[0]?.start, startOf(daemon.pid));

    utimesSync(pidfile('ovsdb-server'), 1000, 1000);
    assert.equal(finder.isUnchanged(), false, 'written again');
    assert.deepEqual(searchWith(finder), { ...expected, changed: false }, 'by the same process');
    assert.equal(finder.isUnchanged(), true);

    await end(daemon);
    assert.equal(finder.isUnchanged(), true, 'it checks no process');
    const gone = { processes: [], missing: NONE, isStarting: false };
    assert.deepEqual(searchWith(finder), { ...gone, changed: true });
    assert.deepEqual(searchWith(finder), { ...gone, changed: false });
    assert.equal(finder.isUnchanged(), false, 'the daemon may come back under its pidfile');
  });

  const parents: [what: string, comm: string, title: string, isMonitor: boolean, isStarting: boolean][] = [
    ['a monitor with its title', 'x', 'ovs-vswitchd: monitoring pid 1 (healthy)', true, false],
    ['a monitor without a title yet, known by its name', 'ovs-vswitchd', 'something', true, true],
    ['a monitor without a title yet, known by its later name', 'monitor', 'something', true, true],
    ['a monitor without a title yet, known by its program', 'x', '/usr/sbin/ovs-vswitchd', true, true],
    ['the other daemon’s monitor', 'x', 'ovsdb-server: monitoring pid 1 (healthy)', false, false],
    ['another program', 'x', '/usr/bin/something', false, false],
  ];
  for (const [what, comm, title, isMonitor, isStarting] of parents) {
    it(`a parent that is ${what} is ${isMonitor ? 'its monitor' : 'not its monitor'}, ${isStarting ? 'for now' : 'permanently'}`, async () => {
      const { parent, pid, stop } = await startParent(comm, title);
      try {
        const finder = new DaemonFinder(rundir);
        const expected = {
          processes: [`ovs-vswitchd daemon ${pid}`, ...(isMonitor ? [`ovs-vswitchd monitor ${parent.pid}`] : [])],
          missing: ['ovsdb-server absent'],
          changed: true,
          isStarting,
        };
        assert.deepEqual(searchWith(finder), expected);
        assert.deepEqual(searchWith(finder), { ...expected, changed: false });
        assert.equal(finder.isUnchanged(), !isStarting, 'while it is starting another search may find more');
      } finally {
        stop();
      }
    });
  }

  it('keep their monitor while they are down, until the monitor ends', async () => {
    const { parent, pid, stop } = await startParent('x', 'ovs-vswitchd: monitoring pid 1 (healthy)');
    const finder = new DaemonFinder(rundir);
    finder.find();
    stop();
    await eventually(() => commOf(pid) === undefined, 'the daemon is down');
    const monitor = `ovs-vswitchd monitor ${parent.pid}`;
    assert.deepEqual(searchWith(finder).processes, [monitor]);
    await end(parent);
    assert.deepEqual(searchWith(finder).processes, []);
  });

  it('have a monitor that is first seen while they are down only if an earlier agent recorded it', async () => {
    const { parent, stop } = await startParent('x', 'ovs-vswitchd: monitoring pid 1 (healthy)');
    const recorded = new DaemonFinder(rundir).find().processes;
    stop();
    await eventually(() => new DaemonFinder(rundir).find().processes.length === 0, 'the daemon is down');
    assert.deepEqual(searchWith(new DaemonFinder(rundir)).processes, []);
    const monitor = `ovs-vswitchd monitor ${parent.pid}`;
    assert.deepEqual(searchWith(new DaemonFinder(rundir, () => recorded)).processes, [monitor]);
    const later = recorded.map((process) => ({ ...process, start: process.start + 1 }));
    assert.deepEqual(searchWith(new DaemonFinder(rundir, () => later)).processes, [], 'another process has its pid');
  });

  const TITLE = `ovs-vswitchd: monitoring pid ${NO_PID} (healthy)`;
  /** Each returns what the pidfile of an ovs-vswitchd that was killed contains: any process may have its pid by now. */
  const hostile: Record<string, () => Promise<number>> = {
    async 'the title of the monitor of a killed daemon'() {
      await start('/bin/sleep', ['1000'], TITLE);
      return NO_PID;
    },
    'the name and the pid of a killed daemon': async () =>
      (await start(programOf('ovs-vswitchd', '/bin/sleep'), ['1000'], 'ovs-vswitchd')).pid,
    async 'the name and the pid of a killed daemon below a parent with the title of its monitor'() {
      grandchild = (await startParent('ovs-vswitchd', TITLE)).pid;
      rmSync(pidfile('ovs-vswitchd'));
      return grandchild;
    },
    async 'the name, the pid and a locked pidfile elsewhere'() {
      const { pid } = await startDaemon('ovs-vswitchd');
      linkSync(pidfile('ovs-vswitchd'), join(temp(), 'ovs-vswitchd.pid'));
      return pid;
    },
  };
  for (const [what, act] of Object.entries(hostile)) {
    it(`are not another program that has ${what}`, async () => {
      write('ovs-vswitchd', await act());
      assert.deepEqual(searchWith(new DaemonFinder(rundir)).processes, []);
    });
  }

  it('are not another program that has the pidfile open but not locked', () => {
    const file = openSync(pidfile('ovs-vswitchd'), 'w');
    const child = spawn('/bin/sleep', ['1000'], { argv0: 'ovs-vswitchd', stdio: ['ignore', file, 'ignore'] });
    started.push(child);
    writeSync(file, `${child.pid}\n`);
    assert.deepEqual(searchWith(new DaemonFinder(rundir)).processes, []);
  });

  it('have no monitor that runs as another user', async function () {
    if (process.getuid?.() !== 0) return skipFor({ name: 'another user', install: 'run as root' }, this);
    const daemon = lockingCommand(pidfile('ovs-vswitchd'), programOf('ovs-vswitchd', '/bin/sleep'), ['x', '1000']);
    const script = 'my $pid = fork // die; exec @ARGV if !$pid; $> = 65534; print "$pid\\n"; close STDOUT; wait';
    const parent = await start('perl', ['-e', script, ...daemon], TITLE);
    const [line] = (await once(parent.stdout!, 'data')) as [Buffer];
    const pid = Number(String(line));
    await eventually(() => commOf(pid) === 'ovs-vswitchd', 'the daemon runs');
    assert.deepEqual(searchWith(new DaemonFinder(rundir)).processes, [`ovs-vswitchd daemon ${pid}`]);
    process.kill(pid, 'SIGKILL');
  });

  it('are found again without another read of a pidfile that did not change', async () => {
    const daemon = await startDaemon('ovs-vswitchd');
    const file = pidfile('ovs-vswitchd');
    utimesSync(file, 1000, 1000);
    const finder = new DaemonFinder(rundir);
    const { processes } = searchWith(finder);
    assert.deepEqual(processes, [`ovs-vswitchd daemon ${daemon.pid}`]);
    writeFileSync(file, 'x'.repeat(String(daemon.pid).length + 1));
    utimesSync(file, 1000, 1000);
    const again = searchWith(finder);
    assert.deepEqual([again.processes, again.missing, again.changed], [processes, ['ovsdb-server absent'], false]);
  });
});
