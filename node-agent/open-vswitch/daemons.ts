import { closeSync, openSync, type Stats, statSync } from 'node:fs';
import { basename, join } from 'node:path';
import { quote } from '../../model/errors.ts';
import { resultOrNone } from '../../model/json.ts';
import { lockHolder } from '../../native/file-lock.ts';
import { readBounded } from '../files/bounded-file.ts';
import { commandLineOf, commOf, identityOf, parentOf, processUserOf, startOf } from '../processes/proc.ts';

export const OVS_DAEMONS = ['ovs-vswitchd', 'ovsdb-server'] as const;
type OvsDaemonName = (typeof OVS_DAEMONS)[number];

export interface OvsProcess {
  readonly name: OvsDaemonName;
  /** A `monitor` is the parent that restarts a crashed daemon; the new daemon inherits its CPU mask. */
  readonly role: 'daemon' | 'monitor';
  readonly pid: number;
  /** Clock ticks since the machine's start; distinguishes it from a later process with the same id. */
  readonly start: number;
}

/** `absent`: no pidfile or process; `stale`: another program has the pid; `hidden`: in another PID namespace. */
export interface MissingDaemon {
  readonly name: OvsDaemonName;
  readonly pid?: number;
  readonly code: 'absent' | 'stale' | 'hidden' | 'unreadable';
  readonly message: string;
}

interface DaemonSearch {
  readonly processes: readonly OvsProcess[];
  readonly missing: readonly MissingDaemon[];
  readonly changed: boolean;
  /** Whether a parent may still turn out to be a monitor. That is decided soon, and no event reports it. */
  readonly isStarting: boolean;
}

export interface DaemonFinder {
  /** Finds the processes. If nothing changed, it costs one system call for each pidfile and process. */
  find(): DaemonSearch;
  /** Whether the pidfiles are unchanged since the last search, at one call each. It does not check the processes. */
  isAsFound(): boolean;
}

/**
 * Finds both daemons and their monitors. A pidfile survives a killed daemon, and any process may get its pid or name: a
 * daemon is the process that has the lock of the pidfile. `/proc/PID/exe` would need CAP_SYS_PTRACE. It remembers a
 * monitor whose daemon is down: the next one will be its child. Source: make_pidfile and read_pidfile in
 * lib/daemon-unix.c of Open vSwitch. @param recorded by an earlier agent
 */
export function createDaemonFinder(rundir: string, recorded: () => readonly OvsProcess[] = () => []): DaemonFinder {
  const monitorsOf = (daemon: OvsDaemonName) =>
    recorded().filter(({ name, role }) => name === daemon && role === 'monitor');
  const lookups = OVS_DAEMONS.map((name) => createLookup(join(rundir, `${name}.pid`), name, () => monitorsOf(name)));
  return {
    find() {
      const result = lookups.map((lookup) => lookup.find());
      return {
        processes: result.flatMap(({ processes }) => processes),
        missing: result.flatMap(({ missing }) => missing),
        changed: result.some(({ changed }) => changed),
        isStarting: result.some(({ isStarting }) => isStarting),
      };
    },
    isAsFound: () => lookups.every((lookup) => lookup.isAsFound()),
  };
}

const keyOf = ({ role, pid, start }: OvsProcess): string => `${role} ${pid} ${start}`;

function createLookup(file: string, name: OvsDaemonName, recorded: () => readonly OvsProcess[]): DaemonFinder {
  /** The pidfile of the last search, or its absence; undefined if another search may find more. */
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
        return { processes, missing: [], changed: false, isStarting: false };
      const result = readPidfile(file, name);
      if ('daemon' in result) {
        const { daemon, parent } = result;
        const same = processes.map(keyOf).join();
        processes = parent.monitor === undefined ? [daemon] : [daemon, parent.monitor];
        identities = processes.map(({ pid }) => identityOf(pid));
        before = parent.isKnown && pidfile !== undefined ? { pidfile } : undefined;
        return { processes, missing: [], changed: processes.map(keyOf).join() !== same, isStarting: !parent.isKnown };
      }
      before = pidfile === undefined ? { pidfile } : undefined;
      const monitors = processes.length > 0 ? processes.filter(({ role }) => role === 'monitor') : recorded();
      const remaining = monitors.filter(({ pid, start }) => startOf(pid) === start);
      const changed = remaining.map(keyOf).join() !== processes.map(keyOf).join();
      processes = remaining;
      identities = remaining.map(({ pid }) => identityOf(pid));
      return { processes, missing: [result], changed, isStarting: false };
    },
  };
}

/** Maximum bytes of a pidfile. Open vSwitch's own user can write to its directory. */
const MAX_PIDFILE_BYTES = 64;

/** Reads the process id from a pidfile. @throws Error if it contains none, or a system error */
export function readPid(file: string): number {
  const text = readBounded(file, MAX_PIDFILE_BYTES).trim();
  if (!/^[1-9]\d{0,6}$/.test(text)) throw new Error(`${file} contains no process id`);
  return Number(text);
}

function readPidfile(file: string, name: OvsDaemonName): { daemon: OvsProcess; parent: Parent } | MissingDaemon {
  let pid: number;
  let holder: number | undefined;
  try {
    pid = readPid(file);
    holder = holderOf(file);
  } catch (error) {
    const { code: cause, message: why } = error as NodeJS.ErrnoException;
    const code = cause === 'ENOENT' ? 'absent' : 'unreadable';
    const hint = cause === undefined ? '' : '; is the daemon running (--ovs-rundir)?';
    return { name, code, message: `${cause === undefined ? '' : `${file}: `}${why}${hint}` };
  }
  if (holder !== undefined && holder > 0) {
    return { daemon: processOf(name, 'daemon', holder), parent: parentOfDaemon(name, holder) };
  }
  const missing = (code: MissingDaemon['code'], but: string): MissingDaemon => {
    return { name, pid, code, message: `${file} says ${pid}, but ${but}` };
  };
  if (holder === 0) return missing('hidden', 'that process is not visible here; does the agent have hostPID?');
  const comm = commOf(pid);
  if (comm === undefined) return missing('absent', 'that process does not exist');
  return missing('stale', `that process (${quote(comm)}) has not locked the file, so it is another program`);
}

function holderOf(file: string): number | undefined {
  const descriptor = openSync(file, 'r');
  try {
    return lockHolder(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

function processOf(name: OvsDaemonName, role: OvsProcess['role'], pid: number): OvsProcess {
  return { name, role, pid, start: startOf(pid) ?? 0 };
}

function statOf(file: string): Stats | undefined {
  return resultOrNone(() => statSync(file));
}

interface Parent {
  readonly monitor: OvsProcess | undefined;
  /** Whether the result is final: a starting monitor has not set its title yet. */
  readonly isKnown: boolean;
}

/**
 * The monitor has the user of its daemon, and shows its purpose in its command line, but only after its daemon has
 * written the pidfile. Only the parent is considered, since any process may show the same. Source:
 * fork_and_wait_for_startup and monitor_daemon in lib/daemon-unix.c of Open vSwitch.
 */
function parentOfDaemon(name: OvsDaemonName, pid: number): Parent {
  const parent = parentOf(pid);
  if (parent === undefined) return { monitor: undefined, isKnown: false };
  if (parent <= 1 || processUserOf(parent) !== processUserOf(pid)) return { monitor: undefined, isKnown: true };
  const line = commandLineOf(parent);
  const comm = commOf(parent);
  const isTitled = line?.startsWith(`${name}: monitoring pid `) === true;
  const isUntitled =
    !isTitled && (comm === name || comm === 'monitor' || basename(line?.split(' ', 1)[0] ?? '') === name);
  return {
    monitor: isTitled || isUntitled ? processOf(name, 'monitor', parent) : undefined,
    isKnown: line !== undefined && comm !== undefined && !isUntitled,
  };
}
