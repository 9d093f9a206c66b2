import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { eventually, isListening } from './support.ts';

const SCHEMA = '/usr/share/openvswitch/vswitch.ovsschema';

export type RealOvs = Awaited<ReturnType<typeof startRealOvs>>;

/** Creates a directory with the database of an Open vSwitch; `env` makes its programs use it instead of the host's. */
export function createOvsDatabase(rundir: string) {
  mkdirSync(rundir, { recursive: true });
  const database = join(rundir, 'conf.db');
  const socket = join(rundir, 'db.sock');
  const env = { ...process.env, OVS_RUNDIR: rundir, OVS_DBDIR: rundir, OVS_LOGDIR: rundir, OVS_SYSCONFDIR: rundir };
  execFileSync('ovsdb-tool', ['create', database, SCHEMA], { env });
  return { env, socket, serverArguments: [database, `--remote=punix:${socket}`] };
}

/** Starts its own Open vSwitch below the directory, on the userspace datapath. It does not touch the host's. */
export async function startRealOvs(directory: string) {
  const rundir = join(directory, 'ovs');
  const { env, socket, serverArguments } = createOvsDatabase(rundir);
  const start = (program: string, ...args: string[]) =>
    spawn(program, [...args, '--pidfile', '-vconsole:off', '-vsyslog:off'], { env, stdio: 'ignore' });
  const vsctl = (...args: string[]) =>
    execFileSync('ovs-vsctl', [`--db=unix:${socket}`, ...args], { env, encoding: 'utf8' });

  const ovsdb = start('ovsdb-server', ...serverArguments);
  await eventually(() => isListening(socket), 'ovsdb-server listens');
  vsctl('--no-wait', 'init');
  const vswitchd = start('ovs-vswitchd', `unix:${socket}`);
  await eventually(() => existsSync(join(rundir, 'ovs-vswitchd.pid')), 'ovs-vswitchd runs');
  return {
    rundir,
    vswitchd,
    ovsdb,
    vsctl,
    async stop() {
      for (const child of [vswitchd, ovsdb]) {
        if (child.exitCode !== null || child.signalCode !== null) continue;
        child.kill('SIGTERM');
        await once(child, 'exit');
      }
    },
  };
}
