import { type CpuSet, unionOf } from '../../model/cpu-set.ts';
import { PlumblineError } from '../../model/errors.ts';
import { sleep } from '../../runtime/time.ts';
import type { AgentMetrics } from '../metrics.ts';
import { createDaemonFinder, type MissingDaemon, type OvsProcess } from './daemons.ts';
import { createKeeper, type Goal, type Keeper, type KeeperDeps, type PassResult, type ThreadState } from './keeper.ts';
import type { MasksFile } from './masks-file.ts';
import { createMemory } from './memory.ts';

/** Seconds that a container's start may wait for the threads to leave its CPUs. */
const VACATE_DEADLINE = 2;
const VACATE_PAUSE = 0.02;

/** Threads that stayed on CPUs they had to leave, for longer than a container's start may be held back. */
export class VacateError extends PlumblineError {
  constructor(cpus: CpuSet, staying: readonly string[]) {
    super('vacate', `Open vSwitch does not leave CPUs ${cpus}: ${staying.join(', ')}`);
  }
}

export interface CrewDeps extends KeeperDeps {
  /** Where the daemons put their pidfiles. */
  readonly rundir: string;
  readonly masksFile: MasksFile;
  readonly metrics: AgentMetrics;
}

export interface CrewResult {
  /** Threads whose mask was changed. */
  readonly moved: number;
  /** For people: what is not managed, held back or refused. */
  readonly problems: readonly string[];
}

export interface ProcessState extends OvsProcess {
  readonly threads: readonly ThreadState[];
}

/** The keepers of both daemons and their monitors, made anew as daemons come and go. */
export interface Crew {
  /** Sees which processes and threads there are. To be done before `pmdCpus` and `apply`, which go by it. */
  look(): void;
  /** CPUs of poll mode driver threads. */
  pmdCpus(): CpuSet;
  /** One pass over every thread. The masks that the first one finds are saved before it changes any. */
  apply(goal: Goal): CrewResult;
  /** Whether a few calls find everything as the last pass left it. */
  isAsLeft(): boolean;
  /** Gives every thread its own mask back, also what an agent that was killed left. @returns threads changed */
  restore(): number;
  /** Ends the work and leaves the threads where they are; their own masks stay saved. */
  leave(): void;
  /**
   * Returns when no thread may run on the CPUs. `otherwise`: where those go that may run on no other.
   * @throws VacateError after 2 s
   */
  vacate(cpus: CpuSet, otherwise: CpuSet, signal?: AbortSignal): Promise<void>;
  describe(): ProcessState[];
}

export function createCrew(deps: CrewDeps): Crew {
  const { metrics } = deps;
  const find = createDaemonFinder(deps.rundir);
  const memory = createMemory(deps.masksFile, (pid) => deps.threads.start(pid, pid));
  /** Read once for each pass. */
  let machine = deps.machine();
  const keeperDeps: KeeperDeps = { ...deps, machine: () => machine };
  let keepers: readonly Keeper[] = [];
  let missing: readonly MissingDaemon[] = [];

  /** A daemon that was restarted is another process. */
  const refresh = (): boolean => {
    const found = find();
    missing = found.missing;
    if (!found.changed) return false;
    keepers = found.processes.map((process) => {
      const known = keepers.find((keeper) => isSame(keeper.process, process));
      return known ?? createKeeper(process, keeperDeps);
    });
    return true;
  };

  const look = () => {
    machine = deps.machine();
    refresh();
    for (const keeper of keepers) keeper.look();
  };

  const record = (name: string, results: readonly PassResult[]) => {
    const sum = (of: (result: PassResult) => number) => results.reduce((total, result) => total + of(result), 0);
    metrics.ovsThreads.set(
      { daemon: name },
      sum(({ threads }) => threads),
    );
    metrics.ovsClipped.set(
      { daemon: name },
      sum(({ clipped }) => clipped),
    );
    metrics.ovsRefused.set(
      { daemon: name },
      sum(({ errors }) => errors.length),
    );
    const moved = sum((result) => result.moved);
    if (moved === 0) return;
    metrics.ovsMoves.inc({ daemon: name }, moved);
    metrics.ovsLastChange.set({ daemon: name }, Date.now() / 1000);
  };

  const forget = () => {
    for (const metric of [metrics.ovsThreads, metrics.ovsClipped, metrics.ovsRefused]) metric.reset();
  };

  return {
    look,
    pmdCpus: () => unionOf(keepers.map((keeper) => keeper.pmdCpus())),

    apply(goal) {
      const problems = missing.map(({ name, message }) => `${name} is not managed: ${message}`);
      const unsaved = memory.remember(keepers);
      if (unsaved !== undefined) problems.push(unsaved);
      if ('only' in goal && !goal.only.intersects(machine)) {
        problems.push(`none of the free CPUs (${goal.only}) is on this machine: the threads stay where they are`);
        return { moved: 0, problems };
      }
      const results = keepers.map((keeper) => ({ keeper, ...keeper.apply(goal) }));
      for (const name of new Set(keepers.map(({ process }) => process.name))) {
        const own = results.filter(({ keeper }) => keeper.process.name === name);
        record(name, own);
        problems.push(...complaints(name, own));
      }
      return { moved: results.reduce((sum, { moved }) => sum + moved, 0), problems };
    },

    isAsLeft: () => !refresh() && keepers.every((keeper) => keeper.isAsLeft()),

    restore() {
      refresh();
      memory.recall(keepers);
      const moved = keepers.reduce((sum, keeper) => sum + keeper.restore().moved, 0);
      memory.clear();
      forget();
      return moved;
    },

    leave: forget,

    async vacate(cpus, otherwise, signal) {
      const started = performance.now();
      machine = deps.machine();
      for (;;) {
        refresh();
        memory.remember(keepers);
        const staying = keepers.flatMap((keeper) => leave(keeper, cpus, otherwise));
        const seconds = (performance.now() - started) / 1000;
        if (staying.length === 0) return metrics.vacateSeconds.observe(seconds);
        if (seconds > VACATE_DEADLINE) throw new VacateError(cpus, staying);
        await sleep(VACATE_PAUSE, signal);
      }
    },

    describe() {
      refresh();
      return keepers.map((keeper) => ({ ...keeper.process, threads: keeper.describe() }));
    },
  };
}

function isSame(a: OvsProcess, b: OvsProcess): boolean {
  return a.pid === b.pid && a.start === b.start && a.role === b.role;
}

function complaints(name: string, results: readonly PassResult[]): string[] {
  const errors = results.flatMap((result) => result.errors);
  const clipped = results.reduce((sum, result) => sum + result.clipped, 0);
  const said: string[] = [];
  if (errors.length > 0) said.push(`${name}: the kernel refused ${errors.length} threads: ${[...new Set(errors)]}`);
  if (clipped > 0) said.push(`${name}: its cpuset holds ${clipped} threads on fewer CPUs than they may have`);
  return said;
}

/** Moves a process's threads off the CPUs; names those that are still there. */
function leave(keeper: Keeper, cpus: CpuSet, otherwise: CpuSet): string[] {
  if (keeper.threadsOn(cpus).length === 0) return [];
  keeper.apply({ avoid: cpus, otherwise });
  const tids = keeper.threadsOn(cpus);
  return tids.length === 0 ? [] : [`${keeper.process.name} threads ${tids.join(' ')}`];
}
