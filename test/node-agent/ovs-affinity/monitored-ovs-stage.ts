import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createOvsDatabase } from '../ovs-stage.ts';
import { eventually } from '../support.ts';

export const DAEMONS = ['ovs-vswitchd', 'ovsdb-server'] as const;
type DaemonName = (typeof DAEMONS)[number];

export type MonitoredOvs = Awaited<ReturnType<typeof startMonitoredOvs>>;

/**
 * A real Open vSwitch, started like in distributions: detached, with --monitor, with one bridge of the userspace
 * datapath. It has Open vSwitch's dummies, so that poll mode drivers work without DPDK.
 */
export async function startMonitoredOvs(directory: string) {
  const rundir = join(directory, 'run');
  const { env, socket, serverArguments } = createOvsDatabase(rundir);
  const run = (program: string, ...args: string[]) =>
    execFileSync(program, args, { env, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
  const detached = ['--detach', '--monitor', '--pidfile', '-vconsole:off', '-vsyslog:off'];
  const argumentsOf = {
    'ovsdb-server': serverArguments,
    'ovs-vswitchd': [`unix:${socket}`, '--enable-dummy'],
  };
  run('ovsdb-server', ...argumentsOf['ovsdb-server'], ...detached);
  const vsctl = (...args: string[]) => run('ovs-vsctl', `--db=unix:${socket}`, '--retry', '--timeout=60', ...args);
  vsctl('--no-wait', 'init');
  run('ovs-vswitchd', ...argumentsOf['ovs-vswitchd'], ...detached);
  vsctl('add-br', 'plumb1', '--', 'set', 'bridge', 'plumb1', 'datapath_type=netdev');

  const pid = (daemon: string) => Number(read(join(rundir, `${daemon}.pid`)));
  const parentOf = (daemon: DaemonName) => Number(/PPid:\s*(\d+)/.exec(read(`/proc/${pid(daemon)}/status`))?.[1]);
  const monitors = { 'ovs-vswitchd': parentOf('ovs-vswitchd'), 'ovsdb-server': parentOf('ovsdb-server') };
  return {
    rundir,
    /** From its pidfile; 0 without one. */
    pid,
    isUp: (daemon: DaemonName) => pid(daemon) > 0 && isAlive(pid(daemon)),
    /** The parent process that restarts a daemon. */
    monitor: (daemon: DaemonName) => monitors[daemon],
    /** Daemons and their monitors. */
    processes: () => DAEMONS.flatMap((daemon) => [pid(daemon), monitors[daemon]]),
    vsctl,
    /** Starts a daemon that has ended permanently, with its own monitor; resolves when it works. */
    async startAgain(daemon: DaemonName) {
      await once(spawn(daemon, [...argumentsOf[daemon], ...detached], { env, stdio: 'ignore' }), 'exit');
      monitors[daemon] = parentOf(daemon);
    },
    async stop() {
      for (const daemon of DAEMONS) {
        const processes = [monitors[daemon], pid(daemon)].filter((id) => id > 0 && isAlive(id));
        // The monitor first, because it would restart the daemon.
        for (const id of processes) process.kill(id, 'SIGKILL');
        await eventually(() => !processes.some(isAlive), `${daemon} has ended`);
      }
    },
  };
}

/** A zombie is not alive. */
export function isAlive(pid: number): boolean {
  return /^State:\s*[^Z]/m.test(read(`/proc/${pid}/status`));
}

function read(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}
