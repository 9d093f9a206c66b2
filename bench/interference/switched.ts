import { execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startMonitoredOvs } from '../../test/node-agent/ovs-affinity/monitored-ovs-stage.ts';
import { endChild } from '../../test/support/children.ts';
import { eventually } from '../../test/support/eventually.ts';
import { compile } from '../support/c-program.ts';

/** Packets a second, each of a new connection. */
export const PACKETS = 20_000;

/**
 * Starts Open vSwitch with the userspace datapath, and a generator in a network namespace. Each packet belongs to a new
 * connection, and the only flow rule hashes over addresses and ports, so each packet takes the slow path (upcall).
 *
 * @throws Error if the switch forwards no packet within two minutes; needs root
 */
export async function startSwitched() {
  const directory = mkdtempSync(join(tmpdir(), 'plumbline-bench-'));
  const flood = compile('interference/flood.c');
  const ovs = await startMonitoredOvs(directory);
  const names = ['a', 'b'].map((end) => ({ port: `pl${process.pid}${end}`, peer: `pe${process.pid}${end}` }));
  const [sender] = names as [{ port: string; peer: string }];
  const args = ['--net', flood.path, sender.peer, String(PACKETS)];
  const generator = spawn('unshare', args, { stdio: 'ignore' });
  const stop = async () => {
    await endChild(generator, 'SIGKILL');
    await ovs.stop();
    // The kernel removes a pair with its namespace; a pair that never moved there is removed here.
    for (const { port } of names) tryRun('ip', 'link', 'delete', port);
    flood.remove();
    rmSync(directory, { recursive: true, force: true });
  };
  try {
    const own = namespaceOf('self');
    await eventually(() => namespaceOf(generator.pid!) !== own, 'the generator to have a network namespace');
    for (const { port, peer } of names) {
      run('ip', 'link', 'add', port, 'type', 'veth', 'peer', 'name', peer, 'netns', String(generator.pid));
      run('ip', 'link', 'set', port, 'up');
      run('nsenter', '-t', String(generator.pid), '-n', 'ip', 'link', 'set', peer, 'up');
      ovs.vsctl('add-port', 'plumb1', port);
    }
    const hashed = 'priority=1,udp,actions=multipath(symmetric_l3l4+udp,0,modulo_n,2,0,NXM_NX_REG0[]),NORMAL';
    run('ovs-ofctl', 'add-flow', `unix:${join(ovs.rundir, 'plumb1.mgmt')}`, hashed);
    const received = () => Number(ovs.vsctl('get', 'interface', sender.port, 'statistics:rx_packets'));
    // Open vSwitch writes statistics every five seconds.
    await eventually(() => received() > 0, 'packets to be forwarded');
    const pids = [ovs.pid('ovs-vswitchd'), ovs.pid('ovsdb-server')];
    return { pids, rundir: ovs.rundir, generator: generator.pid!, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** The network namespace of a process, '' once that has ended. */
function namespaceOf(pid: number | 'self'): string {
  try {
    return execFileSync('readlink', [`/proc/${pid}/ns/net`], { encoding: 'utf8' }).trim();
  } catch {
    return '';
  }
}

const run = (program: string, ...args: string[]) => execFileSync(program, args, { encoding: 'utf8', stdio: 'pipe' });

function tryRun(program: string, ...args: string[]): void {
  try {
    run(program, ...args);
  } catch {
    // It is gone already.
  }
}
