import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** The daemons whose threads are managed, by the names of their pidfiles and of their main threads. */
export const OVS_DAEMONS = ['ovs-vswitchd', 'ovsdb-server'] as const;
export type OvsDaemonName = (typeof OVS_DAEMONS)[number];

export interface OvsDaemon {
  readonly name: OvsDaemonName;
  readonly pid: number;
}

/** Why a daemon is not managed: `absent` (no pidfile, or nobody has that pid), `stale` (somebody else has it). */
export interface MissingDaemon {
  readonly name: OvsDaemonName;
  readonly code: 'absent' | 'stale' | 'unreadable';
  readonly message: string;
}

export const isFound = (daemon: OvsDaemon | MissingDaemon): daemon is OvsDaemon => 'pid' in daemon;
export const isMissing = (daemon: OvsDaemon | MissingDaemon): daemon is MissingDaemon => !isFound(daemon);

/**
 * Looks both daemons up by the pidfiles in Open vSwitch's run directory. A pidfile outlives a daemon that was killed,
 * and its number may have gone to any other process since: the process must bear the daemon's name.
 */
export function findDaemons(rundir: string): (OvsDaemon | MissingDaemon)[] {
  return OVS_DAEMONS.map((name) => findDaemon(rundir, name));
}

function findDaemon(rundir: string, name: OvsDaemonName): OvsDaemon | MissingDaemon {
  const file = join(rundir, `${name}.pid`);
  let text: string;
  try {
    text = readFileSync(file, 'utf8').trim();
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code === 'ENOENT' ? 'absent' : 'unreadable';
    return { name, code, message: `${file}: ${(error as Error).message}; is the daemon running (--ovs-rundir)?` };
  }
  if (!/^[1-9]\d{0,6}$/.test(text)) return { name, code: 'unreadable', message: `${file} holds no process id` };
  const pid = Number(text);
  const comm = commOf(pid);
  if (comm === undefined) return { name, code: 'absent', message: `${file} says ${pid}, but there is no such process` };
  if (comm !== name) return { name, code: 'stale', message: `${file} says ${pid}, but that process is ${comm}` };
  return { name, pid };
}

/** The name of a process (of its main thread), or undefined if it is gone. */
export function commOf(pid: number): string | undefined {
  try {
    return readFileSync(`/proc/${pid}/comm`, 'utf8').trimEnd();
  } catch {
    return undefined;
  }
}
