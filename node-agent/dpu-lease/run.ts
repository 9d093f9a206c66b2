import { statSync } from 'node:fs';
import { join } from 'node:path';
import { resultOrNone } from '../../model/json.ts';
import type { DpuRun } from '../../model/lease/dpu-run.ts';
import { readBounded } from '../files/bounded-file.ts';
import { DaemonFinder, readPid } from '../open-vswitch/daemons.ts';
import { bootId } from '../processes/proc.ts';

export interface RunReading {
  readonly run: DpuRun;
  /** Seconds since Open vSwitch started. */
  readonly ageSeconds: number;
}

/** Of /proc on every architecture (USER_HZ). */
const TICKS_PER_SECOND = 100;
const MAX_UPTIME_BYTES = 128;

/** Undefined while Open vSwitch's pidfile or the boot id cannot be read. */
export function readDpuRun(rundir: string): RunReading | undefined {
  const pidfile = join(rundir, 'ovs-vswitchd.pid');
  return resultOrNone(() => {
    const uptime = Number.parseFloat(readBounded('/proc/uptime', MAX_UPTIME_BYTES));
    const id = bootId();
    if (id === '' || Number.isNaN(uptime)) return undefined;
    const daemon = new DaemonFinder(rundir)
      .find()
      .processes.find(({ name, role }) => name === 'ovs-vswitchd' && role === 'daemon');
    const written = Math.floor(statSync(pidfile).mtimeMs);
    const run: DpuRun = { bootId: id, pid: daemon?.pid ?? readPid(pidfile), pidfile: written };
    if (daemon !== undefined) {
      return { run: { ...run, start: daemon.start }, ageSeconds: uptime - daemon.start / TICKS_PER_SECOND };
    }
    // The agent is in another PID namespace. A clock that was set since then gives no age.
    const age = (Date.now() - written) / 1000;
    return { run, ageSeconds: age >= 0 && age <= uptime ? age : 0 };
  });
}
