import { type Stats, statSync } from 'node:fs';
import { join } from 'node:path';
import { quote } from '../../model/errors.ts';
import { readBounded } from '../bounded-file.ts';
import { commandLineOf, commOf, identityOf, parentOf, startOf } from '../processes/proc.ts';

/** The daemons whose threads are managed, by the names of their pidfiles and of their main threads. */
export const OVS_DAEMONS = ['ovs-vswitchd', 'ovsdb-server'] as const;
export type OvsDaemonName = (typeof OVS_DAEMONS)[number];

/** A process whose threads are managed. */
export interface OvsProcess {
  readonly name: OvsDaemonName;
  /** A `monitor` is the parent that starts a daemon again when it crashes; what it may run on, the new one inherits. */
  readonly role: 'daemon' | 'monitor';
  readonly pid: number;
  /** Clock ticks since the machine's start; tells it from a later process with the same id. */
  readonly start: number;
}

/** Why a daemon is not managed: `absent` (no pidfile, or nobody has that pid), `stale` (somebody else has it). */
export interface MissingDaemon {
  readonly name: OvsDaemonName;
  readonly code: 'absent' | 'stale' | 'unreadable';
  readonly message: string;
}

export const isMissing = (found: OvsProcess | MissingDaemon): found is MissingDaemon => 'message' in found;

export interface FoundProcesses {
  readonly processes: readonly OvsProcess[];
  readonly missing: readonly MissingDaemon[];
  /** Whether anything was looked up anew since the last time. */
  readonly changed: boolean;
}

/**
 * Looks both daemons and their monitors up by the pidfiles in Open vSwitch's run directory. A pidfile outlives a daemon
 * that was killed, and its number may have gone to any other process since: the process must bear the daemon's name.
 */
export function findDaemons(rundir: string): (OvsProcess | MissingDaemon)[] {
  return OVS_DAEMONS.flatMap<OvsProcess | MissingDaemon>((name) => readPidfile(join(rundir, `${name}.pid`), name));
}

export interface DaemonFinder {
  /** A look that costs one call for each pidfile and process where neither has changed since the last. */
  find(): FoundProcesses;
  /** Whether the pidfiles are those that the last look found: one call for each. Says nothing of the processes. */
  isAsFound(): boolean;
}

/** The same, again and again. A monitor whose daemon is down stays found, as the next daemon will be its child. */
export function createDaemonFinder(rundir: string): DaemonFinder {
  const lookups = OVS_DAEMONS.map((name) => createLookup(join(rundir, `${name}.pid`), name));
  return {
    find() {
      const found = lookups.map((lookup) => lookup.find());
      return {
        processes: found.flatMap(({ processes }) => processes),
        missing: found.flatMap(({ missing }) => missing),
        changed: found.some(({ changed }) => changed),
      };
    },
    isAsFound: () => lookups.every((lookup) => lookup.isAsFound()),
  };
}

function createLookup(file: string, name: OvsDaemonName): DaemonFinder {
  /** The pidfile that led to the processes, or that there was none; undefined where another look may find more. */
  let before: { readonly pidfile: Stats | undefined } | undefined;
  let identities: readonly (number | undefined)[] = [];
  let processes: readonly OvsProcess[] = [];

  const isSamePidfile = (now: Stats | undefined): boolean => {
    if (before === undefined) return false;
    const { pidfile } = before;
    return pidfile?.ino === now?.ino && pidfile?.mtimeMs === now?.mtimeMs && pidfile?.size === now?.size;
  };
  const areAlive = () =>
    processes.every(({ pid }, i) => identities[i] !== undefined && identityOf(pid) === identities[i]);

  return {
    isAsFound: () => isSamePidfile(statOf(file)),
    find() {
      const pidfile = statOf(file);
      if (pidfile !== undefined && isSamePidfile(pidfile) && areAlive())
        return { processes, missing: [], changed: false };
      const found = readPidfile(file, name);
      if (Array.isArray(found)) {
        processes = found;
        identities = found.map(({ pid }) => identityOf(pid));
        before = pidfile && { pidfile };
        return { processes, missing: [], changed: true };
      }
      before = pidfile === undefined ? { pidfile } : undefined;
      const remaining = processes.filter(({ role, pid, start }) => role === 'monitor' && startOf(pid) === start);
      const changed = remaining.length !== processes.length;
      processes = remaining;
      identities = remaining.map(({ pid }) => identityOf(pid));
      return { processes, missing: [found], changed };
    },
  };
}

/** Bytes of a pidfile; it lies in a directory that Open vSwitch's own user writes to. */
const MOST_PIDFILE = 64;

/**
 * The process id in a pidfile.
 * @throws Error if there is none, or the system's
 */
export function readPid(file: string): number {
  const text = readBounded(file, MOST_PIDFILE).trim();
  if (!/^[1-9]\d{0,6}$/.test(text)) throw new Error(`${file} holds no process id`);
  return Number(text);
}

function readPidfile(file: string, name: OvsDaemonName): OvsProcess[] | MissingDaemon {
  let pid: number;
  try {
    pid = readPid(file);
  } catch (error) {
    const { code: cause, message: why } = error as NodeJS.ErrnoException;
    const code = cause === 'ENOENT' ? 'absent' : 'unreadable';
    const hint = cause === undefined ? '' : '; is the daemon running (--ovs-rundir)?';
    return { name, code, message: `${cause === undefined ? '' : `${file}: `}${why}${hint}` };
  }
  const comm = commOf(pid);
  if (comm === undefined) return { name, code: 'absent', message: `${file} says ${pid}, but there is no such process` };
  if (comm !== name) return { name, code: 'stale', message: `${file} says ${pid}, but that process is ${quote(comm)}` };
  const monitor = monitorOf(name, pid);
  const daemon: OvsProcess = { name, role: 'daemon', pid, start: startOf(pid) ?? 0 };
  if (monitor === undefined) return [daemon];
  return [daemon, { name, role: 'monitor', pid: monitor, start: startOf(monitor) ?? 0 }];
}

function statOf(file: string): Stats | undefined {
  try {
    return statSync(file);
  } catch {
    return undefined;
  }
}

/**
 * The parent that watches over a daemon started with --monitor. It calls itself after what it does.
 * Source: monitor_daemon in lib/daemon-unix.c of Open vSwitch.
 */
function monitorOf(name: OvsDaemonName, pid: number): number | undefined {
  const parent = parentOf(pid);
  if (parent === undefined || parent <= 1) return undefined;
  return commandLineOf(parent)?.startsWith(`${name}: monitoring pid `) === true ? parent : undefined;
}
