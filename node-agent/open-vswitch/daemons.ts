import { type Stats, statSync } from 'node:fs';
import { basename, join } from 'node:path';
import { quote } from '../../model/errors.ts';
import { readBounded } from '../files/bounded-file.ts';
import { commandLineOf, commOf, identityOf, parentOf, processIds, startOf } from '../processes/proc.ts';

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

/** Why a daemon is not managed: `absent` (no pidfile, or no process has that pid), `stale` (another program has it). */
export interface MissingDaemon {
  readonly name: OvsDaemonName;
  /** What its pidfile says, if it says one. */
  readonly pid?: number;
  readonly code: 'absent' | 'stale' | 'unreadable';
  readonly message: string;
}

export const isMissing = (found: OvsProcess | MissingDaemon): found is MissingDaemon => 'message' in found;

export interface FoundProcesses {
  readonly processes: readonly OvsProcess[];
  readonly missing: readonly MissingDaemon[];
  /** Whether the processes are others than the last time. */
  readonly changed: boolean;
  /** Whether a parent has not shown yet whether it is a monitor: that shows soon, and nothing tells of it. */
  readonly isStarting: boolean;
}

/**
 * Looks both daemons and their monitors up by the pidfiles in Open vSwitch's run directory. A pidfile outlives a daemon
 * that was killed, and its number may have gone to any other process since: the process must bear the daemon's name.
 */
export function findDaemons(rundir: string): (OvsProcess | MissingDaemon)[] {
  return OVS_DAEMONS.flatMap<OvsProcess | MissingDaemon>((name) => {
    const found = readPidfile(join(rundir, `${name}.pid`), name);
    if (!('daemon' in found)) return found;
    return found.parent.monitor === undefined ? found.daemon : [found.daemon, found.parent.monitor];
  });
}

export interface DaemonFinder {
  /** A look that costs one call for each pidfile and process where neither has changed since the last. */
  find(): FoundProcesses;
  /** Whether the pidfiles are those that the last look found: one call for each. Says nothing of the processes. */
  isAsFound(): boolean;
}

/**
 * The same, again and again. A monitor whose daemon is down stays found, as the next daemon will be its child; one that
 * is first met while its daemon is down is looked for by the process id that it shows.
 */
export function createDaemonFinder(rundir: string): DaemonFinder {
  const lookups = OVS_DAEMONS.map((name) => createLookup(join(rundir, `${name}.pid`), name));
  return {
    find() {
      const found = lookups.map((lookup) => lookup.find());
      return {
        processes: found.flatMap(({ processes }) => processes),
        missing: found.flatMap(({ missing }) => missing),
        changed: found.some(({ changed }) => changed),
        isStarting: found.some(({ isStarting }) => isStarting),
      };
    },
    isAsFound: () => lookups.every((lookup) => lookup.isAsFound()),
  };
}

function createLookup(file: string, name: OvsDaemonName): DaemonFinder {
  /** The pidfile that led to the processes, or that there was none; undefined where another look may find more. */
  let before: { readonly pidfile: Stats | undefined } | undefined;
  /** The process id of a daemon that is down whose monitor was looked for. */
  let searched: number | undefined;
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
        return { processes, missing: [], changed: false, isStarting: false };
      const found = readPidfile(file, name);
      if ('daemon' in found) {
        const { daemon, parent } = found;
        const same = processes.map(keyOf).join();
        processes = parent.monitor === undefined ? [daemon] : [daemon, parent.monitor];
        identities = processes.map(({ pid }) => identityOf(pid));
        before = parent.isKnown && pidfile !== undefined ? { pidfile } : undefined;
        searched = undefined;
        return { processes, missing: [], changed: processes.map(keyOf).join() !== same, isStarting: !parent.isKnown };
      }
      before = pidfile === undefined ? { pidfile } : undefined;
      const remaining = processes.filter(({ role, pid, start }) => role === 'monitor' && startOf(pid) === start);
      if (remaining.length === 0 && found.pid !== undefined && found.pid !== searched) {
        searched = found.pid;
        remaining.push(...monitorsOfEnded(name, found.pid));
      }
      const changed = remaining.map(keyOf).join() !== processes.map(keyOf).join();
      processes = remaining;
      identities = remaining.map(({ pid }) => identityOf(pid));
      return { processes, missing: [found], changed, isStarting: false };
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

/** A daemon and its parent. */
interface FoundDaemon {
  readonly daemon: OvsProcess;
  readonly parent: Parent;
}

function readPidfile(file: string, name: OvsDaemonName): FoundDaemon | MissingDaemon {
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
  const missing = (code: MissingDaemon['code'], but: string): MissingDaemon => {
    return { name, pid, code, message: `${file} says ${pid}, but ${but}` };
  };
  if (comm === undefined) return missing('absent', 'there is no such process');
  if (comm !== name) return missing('stale', `that process is ${quote(comm)}`);
  return { daemon: processOf(name, 'daemon', pid), parent: parentOfDaemon(name, pid) };
}

function processOf(name: OvsDaemonName, role: OvsProcess['role'], pid: number): OvsProcess {
  return { name, role, pid, start: startOf(pid) ?? 0 };
}

const keyOf = ({ role, pid, start }: OvsProcess): string => `${role} ${pid} ${start}`;

function statOf(file: string): Stats | undefined {
  try {
    return statSync(file);
  } catch {
    return undefined;
  }
}

interface Parent {
  readonly monitor: OvsProcess | undefined;
  /** Whether that is final: a starting monitor or detaching parent is the same program and has not named itself yet. */
  readonly isKnown: boolean;
}

const titleOf = (name: OvsDaemonName): string => `${name}: monitoring pid `;

/**
 * The parent that watches over a daemon started with --monitor. It shows what it does as its command line, but only
 * after its daemon has written the pidfile; until then it bears its program's name, then `monitor`.
 * Source: fork_and_wait_for_startup and monitor_daemon in lib/daemon-unix.c of Open vSwitch.
 */
function parentOfDaemon(name: OvsDaemonName, pid: number): Parent {
  const parent = parentOf(pid);
  if (parent === undefined) return { monitor: undefined, isKnown: false };
  if (parent <= 1) return { monitor: undefined, isKnown: true };
  const line = commandLineOf(parent);
  const comm = commOf(parent);
  const isTitled = line?.startsWith(titleOf(name)) === true;
  const isUntitled =
    !isTitled && (comm === name || comm === 'monitor' || basename(line?.split(' ', 1)[0] ?? '') === name);
  return {
    monitor: isTitled || isUntitled ? processOf(name, 'monitor', parent) : undefined,
    isKnown: line !== undefined && comm !== undefined && !isUntitled,
  };
}

/** Looks through the process table for who says that it monitors a process that has ended. */
function monitorsOfEnded(name: OvsDaemonName, ended: number): OvsProcess[] {
  const title = `${titleOf(name)}${ended} `;
  return processIds()
    .filter((pid) => commandLineOf(pid)?.startsWith(title) === true)
    .slice(0, 1)
    .map((pid) => processOf(name, 'monitor', pid));
}
