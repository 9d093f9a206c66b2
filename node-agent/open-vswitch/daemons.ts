import { closeSync, constants, openSync, type Stats, statSync } from 'node:fs';
import { basename, join } from 'node:path';
import { quote } from '../../model/errors.ts';
import { resultOrNone } from '../../model/json.ts';
import { lockHolder } from '../../native/file-lock.ts';
import { readBounded } from '../files/bounded-file.ts';
import { commandLineOf, commOf, identityOf, parentOf, processUserOf, startOf } from '../processes/proc.ts';

export const OVS_DAEMONS = ['ovs-vswitchd', 'ovsdb-server'] as const;
export type OvsDaemonName = (typeof OVS_DAEMONS)[number];

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

/**
 * Finds both daemons and their monitors. A pidfile survives a killed daemon, and any process may get its pid or name: a
 * daemon is the process that has the lock of the pidfile. `/proc/PID/exe` would need CAP_SYS_PTRACE. It remembers a
 * monitor whose daemon is down: the next one will be its child. Source: make_pidfile and read_pidfile in
 * lib/daemon-unix.c of Open vSwitch.
 */
export class DaemonFinder {
  readonly #lookups: readonly PidfileLookup[];

  /** @param recorded by an earlier agent */
  constructor(rundir: string, recorded: () => readonly OvsProcess[] = () => []) {
    this.#lookups = OVS_DAEMONS.map((name) => new PidfileLookup(rundir, name, recorded));
  }

  /** Finds the processes. If nothing changed, it costs one system call for each pidfile and process. */
  find(): DaemonSearch {
    const searches = this.#lookups.map((lookup) => lookup.find());
    return {
      processes: searches.flatMap(({ processes }) => processes),
      missing: searches.flatMap(({ missing }) => missing),
      changed: searches.some(({ changed }) => changed),
      isStarting: searches.some(({ isStarting }) => isStarting),
    };
  }

  /** Whether the pidfiles are unchanged since the last search, at one call each. It does not check the processes. */
  isUnchanged(): boolean {
    return this.#lookups.every((lookup) => lookup.isUnchanged());
  }
}

const statOf = (file: string): Stats | undefined => resultOrNone(() => statSync(file));

const keyOf = ({ role, pid, start }: OvsProcess): string => `${role} ${pid} ${start}`;

/**
 * One daemon. Owner: its pidfile, and for a monitor the earlier agent's record. Age: checked at each search. End: the process
 * ends, or the pidfile names another. While the pidfile cannot be read, what runs is still the daemon.
 */
class PidfileLookup {
  readonly #file: string;
  readonly #name: OvsDaemonName;
  readonly #recorded: () => readonly OvsProcess[];
  /** The pidfile of the last search, or its absence; undefined if another search may find more. */
  #before: { readonly pidfile: Stats | undefined } | undefined;
  #processes: readonly OvsProcess[] = [];
  /** Of `#processes`, in the same order. */
  #identities: readonly (number | undefined)[] = [];

  constructor(rundir: string, name: OvsDaemonName, recorded: () => readonly OvsProcess[]) {
    this.#file = join(rundir, `${name}.pid`);
    this.#name = name;
    this.#recorded = recorded;
  }

  isUnchanged(): boolean {
    return this.#isSamePidfile(statOf(this.#file));
  }

  find(): DaemonSearch {
    const pidfile = statOf(this.#file);
    if (pidfile !== undefined && this.#isSamePidfile(pidfile) && this.#areAlive()) return this.#result(false);
    const reading = readPidfile(this.#file, this.#name);
    if ('processes' in reading) {
      const { processes, isStarting } = reading;
      this.#before = !isStarting && pidfile !== undefined ? { pidfile } : undefined;
      return { ...this.#result(this.#setProcesses(processes)), isStarting };
    }
    this.#before = reading.code === 'absent' && pidfile === undefined ? { pidfile } : undefined;
    if (reading.code === 'unreadable' && this.#processes.length > 0 && this.#areAlive())
      return { ...this.#result(false), missing: [reading] };
    const earlier = this.#processes.length > 0 ? this.#processes : this.#recorded();
    const monitors = earlier.filter(
      ({ name, role, pid, start }) => name === this.#name && role === 'monitor' && startOf(pid) === start,
    );
    return { ...this.#result(this.#setProcesses(monitors)), missing: [reading] };
  }

  #result(changed: boolean): DaemonSearch {
    return { processes: this.#processes, missing: [], changed, isStarting: false };
  }

  /** @returns whether they differ from the last ones */
  #setProcesses(processes: readonly OvsProcess[]): boolean {
    const changed = processes.map(keyOf).join() !== this.#processes.map(keyOf).join();
    this.#processes = processes;
    this.#identities = processes.map(({ pid }) => identityOf(pid));
    return changed;
  }

  #isSamePidfile(now: Stats | undefined): boolean {
    if (this.#before === undefined) return false;
    const { pidfile } = this.#before;
    return pidfile?.ino === now?.ino && pidfile?.mtimeMs === now?.mtimeMs && pidfile?.size === now?.size;
  }

  #areAlive(): boolean {
    return this.#processes.every(({ pid }, i) => {
      const identity = this.#identities[i];
      return identity !== undefined && identityOf(pid) === identity;
    });
  }
}

/** Maximum bytes of a pidfile. Open vSwitch's own user can write to its directory. */
const MAX_PIDFILE_BYTES = 64;

/** Reads the process id from a pidfile. @throws Error if it contains none, or a system error */
export function readPid(file: string): number {
  const text = readBounded(file, MAX_PIDFILE_BYTES).trim();
  if (!/^[1-9]\d{0,6}$/.test(text)) throw new Error(`${file} contains no process id`);
  return Number(text);
}

function readPidfile(file: string, name: OvsDaemonName): Running | MissingDaemon {
  let pid: number;
  let holder: number | undefined;
  try {
    pid = readPid(file);
    holder = holderOf(file);
  } catch (error) {
    const { code: cause, message: why } = error as NodeJS.ErrnoException;
    if (cause === undefined) return { name, code: 'unreadable', message: why };
    const code = cause === 'ENOENT' ? 'absent' : 'unreadable';
    return { name, code, message: `${file}: ${why}; is the daemon running?` };
  }
  if (holder !== undefined && holder > 0) return runningDaemon(name, holder);
  const missing = (code: MissingDaemon['code'], but: string): MissingDaemon => {
    return { name, code, message: `${file} says ${pid}, but ${but}` };
  };
  if (holder === 0) return missing('hidden', 'that process is not visible here; does the agent have hostPID?');
  const comm = commOf(pid);
  if (comm === undefined) return missing('absent', 'that process does not exist');
  return missing('stale', `that process (${quote(comm)}) has not locked the file, so it is another program`);
}

function holderOf(file: string): number | undefined {
  const descriptor = openSync(file, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    return lockHolder(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

/** A daemon, and its monitor if its parent is one. */
type Running = Pick<DaemonSearch, 'processes' | 'isStarting'>;

/**
 * The monitor has the user of its daemon, and shows its purpose in its command line, but only after its daemon has
 * written the pidfile. Only the parent is considered, since any process may show the same. Source:
 * fork_and_wait_for_startup and monitor_daemon in lib/daemon-unix.c of Open vSwitch.
 */
function runningDaemon(name: OvsDaemonName, pid: number): Running {
  const daemon: OvsProcess = { name, role: 'daemon', pid, start: startOf(pid) ?? 0 };
  const parent = parentOf(pid);
  if (parent === undefined) return { processes: [daemon], isStarting: true };
  if (parent <= 1 || processUserOf(parent) !== processUserOf(pid)) return { processes: [daemon], isStarting: false };
  const line = commandLineOf(parent);
  const comm = commOf(parent);
  const isTitled = line?.startsWith(`${name}: monitoring pid `) === true;
  // A starting monitor has not set its title yet.
  const isUntitled =
    !isTitled && (comm === name || comm === 'monitor' || basename(line?.split(' ', 1)[0] ?? '') === name);
  const isStarting = line === undefined || comm === undefined || isUntitled;
  if (!isTitled && !isUntitled) return { processes: [daemon], isStarting };
  const monitor: OvsProcess = { name, role: 'monitor', pid: parent, start: startOf(parent) ?? 0 };
  return { processes: [daemon, monitor], isStarting };
}
