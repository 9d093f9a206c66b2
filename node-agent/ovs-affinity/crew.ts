import { few } from '../../model/brief.ts';
import { CpuSet, unionOf } from '../../model/cpu-set.ts';
import { PlumblineError } from '../../model/errors.ts';
import type { Affinity } from '../../native/affinity.ts';
import { SyscallError } from '../../native/syscall-error.ts';
import { sleep } from '../../runtime/time.ts';
import { createDaemonFinder, type MissingDaemon, type OvsProcess } from '../open-vswitch/daemons.ts';
import type { AgentMetrics } from '../telemetry/metrics.ts';
import { createCrewMetrics, type ProcessResult, sumOf } from './crew-metrics.ts';
import { createKeeper, type Goal, type Keeper, type KeeperDeps, type PassResult, type ThreadState } from './keeper.ts';
import type { MasksFile } from './masks-file.ts';
import { createMemory } from './memory.ts';
import { notManaged, nowhereToGo, type Problem, refusals } from './problems.ts';

/** Seconds that a container's start may wait for the threads to leave its CPUs. */
const VACATE_DEADLINE = 2;
const VACATE_PAUSE = 0.02;

/** Threads that a message names. */
const NAMED = 8;

/** Threads that stayed on CPUs they had to leave, for longer than a container's start may be held back. */
export class VacateError extends PlumblineError {
  constructor(cpus: CpuSet, staying: readonly string[]) {
    super('vacate', `Open vSwitch does not leave CPUs ${cpus.brief}: ${staying.join(', ')}`);
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
  /** Threads that another process had moved since the last pass. */
  readonly displaced: number;
  /** What is not managed, held back or refused. */
  readonly problems: readonly Problem[];
}

export interface ProcessState extends OvsProcess {
  readonly threads: readonly ThreadState[];
}

/** The keepers of both daemons and their monitors, made anew as daemons come and go. */
export interface Crew {
  /**
   * Sees which CPUs the machine has online. Not part of every pass, which is to be short: CPUs come and go by hand, and
   * where they do the kernel changes masks, which a glance or the pass itself notices.
   * @returns whether they changed
   */
  seeMachine(): boolean;
  /** What it saw last. */
  machine(): CpuSet;
  /** Sees which processes and threads there are. To be done before `pmdCpus` and `apply`, which go by it. */
  look(): void;
  /** CPUs of poll mode driver threads. */
  pmdCpus(): CpuSet;
  /** One pass over every thread. The masks that the first one finds are saved before it changes any. */
  apply(goal: Goal): CrewResult;
  /** Whether the daemons and every second thread, the others the next time, are as the last pass left them. */
  isAsLeft(): boolean;
  /** Gives every thread its own mask back, also what an agent that was killed left, and forgets the masks. */
  restore(): CrewResult;
  /** Gives every thread as much of its own mask as is in `free`; the masks stay saved. */
  restoreWithin(free: CpuSet): CrewResult;
  /** Ends the work and leaves the threads where they are; their own masks stay saved. */
  leave(): CrewResult;
  /**
   * Returns when no thread may run on the CPUs. `otherwise`: where those go that may run on no other.
   * @throws VacateError after 2 s
   */
  vacate(cpus: CpuSet, otherwise: CpuSet, signal?: AbortSignal): Promise<void>;
  describe(): ProcessState[];
  /** Whether a daemon is starting, so that its monitor may not be known yet. */
  isStarting(): boolean;
  /** Daemons that are not managed now. */
  unmanaged(): Problem[];
}

export function createCrew(deps: CrewDeps): Crew {
  const { metrics } = deps;
  const finder = createDaemonFinder(deps.rundir);
  let machine = deps.machine();
  const memory = createMemory({
    file: deps.masksFile,
    startOf: (pid) => deps.threads.start(pid, pid),
    unconfined: () => unconfined(deps.affinity) ?? machine,
  });
  const counts = createCrewMetrics(metrics);
  const keeperDeps: KeeperDeps = { ...deps, machine: () => machine };
  let keepers: readonly Keeper[] = [];
  let isStarting = false;
  let missing: readonly MissingDaemon[] = [];
  /** The machine's CPUs at the last pass: the kernel itself changes masks as CPUs come and go. */
  let passedOn = machine;

  const seeMachine = (): boolean => {
    const before = machine;
    machine = deps.machine();
    return !machine.equals(before);
  };

  /** A daemon that was restarted is another process. */
  const refresh = (): boolean => {
    const found = finder.find();
    missing = found.missing;
    isStarting = found.isStarting;
    if (!found.changed) return false;
    keepers = found.processes.map((process) => {
      const known = keepers.find((keeper) => isSame(keeper.process, process));
      return known ?? createKeeper(process, keeperDeps);
    });
    return true;
  };

  const pass = (goal: Goal): ProcessResult[] =>
    keepers.map((keeper) => ({ process: keeper.process, ...keeper.apply(goal) }));

  return {
    seeMachine,
    machine: () => machine,
    look() {
      refresh();
      for (const keeper of keepers) keeper.look();
    },
    pmdCpus: () => unionOf(keepers.map((keeper) => keeper.pmdCpus())),

    apply(goal) {
      const problems = [...missing.map(notManaged), ...memory.remember(keepers)];
      if ('only' in goal && !goal.only.intersects(machine))
        return { moved: 0, displaced: 0, problems: [...problems, nowhereToGo(goal.only)] };
      let results = pass(goal);
      // A CPU that went offline since looks like one that the kernel withholds.
      if (results.some(isTroubled) && seeMachine()) results = pass(goal);
      const isSameMachine = machine.equals(passedOn);
      passedOn = machine;
      if (!isSameMachine) results = results.map((result) => ({ ...result, displaced: 0 }));
      const names = new Set(keepers.map(({ process }) => process.name));
      for (const name of names) {
        const own = results.filter(({ process }) => process.name === name);
        counts.record(name, own);
        problems.push(...refusals(name, own));
      }
      return { ...totals(results), problems };
    },

    isAsLeft: () => finder.isAsFound() && keepers.every((keeper) => keeper.isAsLeft()),

    restore() {
      refresh();
      const lost = memory.recall(keepers);
      const results = keepers.map((keeper) => ({ process: keeper.process, ...keeper.restore() }));
      memory.clear();
      counts.forget();
      const problems = [...lost, ...results.flatMap((result) => refusals(result.process.name, [result]))];
      return { ...totals(results), problems };
    },

    restoreWithin(free) {
      refresh();
      const results = keepers.map((keeper) => keeper.restoreWithin(free));
      counts.forget();
      return { ...totals(results), problems: [] };
    },

    leave() {
      counts.forget();
      return { moved: 0, displaced: 0, problems: [] };
    },

    async vacate(cpus, otherwise, signal) {
      const started = performance.now();
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

    isStarting: () => isStarting,
    unmanaged: () => missing.map(notManaged),
  };
}

function isSame(a: OvsProcess, b: OvsProcess): boolean {
  return a.pid === b.pid && a.start === b.start && a.role === b.role;
}

/** The CPUs of the machine's first process, which services inherit that have no setting of their own. */
function unconfined(affinity: Affinity): CpuSet | undefined {
  try {
    return CpuSet.fromWords(affinity.get(1));
  } catch (error) {
    if (error instanceof SyscallError) return undefined;
    throw error;
  }
}

function totals(results: readonly PassResult[]): Pick<CrewResult, 'moved' | 'displaced'> {
  const { moved, displaced } = sumOf(results);
  return { moved, displaced };
}

const isTroubled = ({ clipped, errors, displaced }: PassResult): boolean =>
  clipped > 0 || errors.length > 0 || displaced > 0;

/** Moves a process's threads off the CPUs; names those that are still there. */
function leave(keeper: Keeper, cpus: CpuSet, otherwise: CpuSet): string[] {
  if (keeper.threadsOn(cpus).length === 0) return [];
  keeper.apply({ avoid: cpus, otherwise });
  const tids = keeper.threadsOn(cpus);
  return tids.length === 0 ? [] : [`${keeper.process.name} threads ${few(tids.map(String), NAMED, 16).join(' ')}`];
}
